"""HuBERT of transformers: raw speech through strided convolutions, masked frames by hand, units predicted by cosine; gradients checkpointed, then features of long records for clustering."""
import torch
import torch.nn.functional as F
from torch import nn
from transformers import HubertConfig, HubertModel

torch.manual_seed(1006)
config = HubertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, conv_dim=(256,) * 7, num_conv_pos_embeddings=64,
                      num_conv_pos_embedding_groups=16, apply_spec_augment=False, layerdrop=0.0)
model = HubertModel(config).cuda()
units = nn.Parameter(torch.randn(500, 256, device="cuda"))
project = nn.Linear(384, 256).cuda()
optimizer = torch.optim.AdamW([*model.parameters(), units, *project.parameters()], 1e-4, fused=True)
model.gradient_checkpointing_enable()
model.train()
for step, seconds in enumerate((4, 6, 4, 8, 6, 8)):
    wave = torch.randn(8, 16000 * seconds, device="cuda")
    with torch.autocast("cuda", torch.float16):
        hidden = model(wave).last_hidden_state
        logits = F.cosine_similarity(project(hidden)[:, :, None], units[None, None], dim=-1) / 0.1
    label = torch.randint(0, 500, logits.shape[:2], device="cuda")
    weight = (torch.rand(logits.shape[:2], device="cuda") < 0.4).float()
    loss = (F.cross_entropy(logits.float().transpose(1, 2), label, reduction="none") * weight).sum() / weight.sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
centers = torch.randn(100, 384, device="cuda")
with torch.inference_mode():
    for seconds in (10, 15, 20):
        frames = model(torch.randn(4, 16000 * seconds, device="cuda"), output_hidden_states=True).hidden_states[4].flatten(0, 1)
        print(seconds, torch.cdist(frames, centers).argmin(1).float().mean().item())
