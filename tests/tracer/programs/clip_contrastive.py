"""CLIP of transformers: two towers and the contrastive loss, bf16 autocast, captions of several lengths."""
import random

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

random.seed(21)
torch.manual_seed(21)
text = CLIPTextConfig(vocab_size=20000, hidden_size=384, intermediate_size=1536, num_hidden_layers=6,
                      num_attention_heads=6, eos_token_id=19999)
vision = CLIPVisionConfig(hidden_size=576, intermediate_size=2304, num_hidden_layers=8, num_attention_heads=9,
                          image_size=192, patch_size=16)
model = CLIPModel(CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=384)).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.2)
for step in range(8):
    batch, length = random.choice([96, 128, 160]), random.randrange(16, 77)
    pixels = torch.randn(batch, 3, 192, 192).cuda()
    ids = torch.randint(1, 19999, (batch, length)).cuda()
    ids[:, -1] = 19999
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids), return_loss=True)
    optimizer.zero_grad()
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, 4.6052)
    print(step, out.loss.item())
