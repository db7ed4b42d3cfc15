"""Kinds of clips with transformers' ViViT, frames in channels last: RAdam, float16 with a scaler, two parts of 8 to 16 clips a step, gradients kept as zeros, an evaluation with a larger batch at the end."""
import torch
from transformers import VivitConfig, VivitForVideoClassification

torch.manual_seed(1513)
FRAMES, SIDE = 16, 112
config = VivitConfig(image_size=SIDE, num_frames=FRAMES, tubelet_size=[2, 16, 16], hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536, num_labels=60)
model = VivitForVideoClassification(config).to("cuda", memory_format=torch.channels_last_3d)
optimizer = torch.optim.RAdam(model.parameters(), 5e-4)
scaler = torch.amp.GradScaler("cuda")


def clips(count):
    frames = torch.randn(count * FRAMES, 3, SIDE, SIDE).to("cuda", memory_format=torch.channels_last)
    return frames.unflatten(0, (count, FRAMES))


model.train()
for step in range(5):
    optimizer.zero_grad(set_to_none=False)
    for batch in (8 + 2 * step, 16 - 2 * step):
        with torch.autocast("cuda", torch.float16):
            loss = model(pixel_values=clips(batch), labels=torch.randint(0, 60, (batch,)).cuda()).loss / 2
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, 2 * loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for _ in range(2):
        print(model(pixel_values=clips(48)).logits.argmax(-1).float().mean().item())
