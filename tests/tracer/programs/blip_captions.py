"""Captions of pictures: BLIP of transformers, padded texts, gradient checkpointing in the vision tower, AdamW with a rate of its own for text, then captions with beams."""
import torch
from transformers import BlipConfig, BlipForConditionalGeneration

torch.manual_seed(1313)
config = BlipConfig(
    vision_config={"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 8, "image_size": 224, "patch_size": 16, "initializer_range": 0.02},
    text_config={"vocab_size": 12000, "hidden_size": 512, "encoder_hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8,
                 "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "sep_token_id": 2, "label_smoothing": 0.1})
model = BlipForConditionalGeneration(config).cuda()
model.gradient_checkpointing_enable()
seen = [p for n, p in model.named_parameters() if n.startswith("vision")]
said = [p for n, p in model.named_parameters() if not n.startswith("vision")]
optimizer = torch.optim.AdamW([{"params": seen, "lr": 1e-5}, {"params": said, "lr": 5e-5}])
model.train()
for step in range(6):
    pixels, ids = torch.randn(24, 3, 224, 224).cuda(), torch.randint(3, 12000, (24, 40))
    mask = torch.ones_like(ids)
    for k in range(24):
        ids[k, 20 + k % 20:], mask[k, 20 + k % 20:] = 0, 0
    labels = ids.masked_fill(mask == 0, -100)
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(pixel_values=pixels, input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    out = model.generate(pixel_values=torch.randn(6, 3, 224, 224).cuda(), num_beams=3, max_new_tokens=16, min_new_tokens=16)
    print(out.shape)
