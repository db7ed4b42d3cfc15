"""Kinds of pictures with transformers' FocalNet in channels last: RMSprop with momentum, float32, two parts of 8 a step, gradients clipped by their norm, an evaluation in between."""
import torch
from transformers import FocalNetConfig, FocalNetForImageClassification

torch.manual_seed(1509)
config = FocalNetConfig(image_size=224, embed_dim=96, hidden_sizes=[192, 384, 768, 768], depths=[2, 2, 6, 2], use_layerscale=True, num_labels=80)
model = FocalNetForImageClassification(config).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
for step in range(5):
    model.train()
    total = 0.0
    for part in range(2):
        x = torch.randn(8, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        loss = model(pixel_values=x, labels=torch.randint(0, 80, (8,)).cuda()).loss / 2
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, total, norm.item())
    if step % 2:
        model.eval()
        with torch.no_grad():
            x = torch.randn(8, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
            print("kinds", model(pixel_values=x).logits.argmax(-1).tolist())
