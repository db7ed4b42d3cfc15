"""Scenes in parts with transformers' UPerNet on its ResNet, in channels last: RMSprop with momentum, float32, two parts of 32 pictures a step, gradients clipped by value."""
import torch
from transformers import UperNetConfig, UperNetForSemanticSegmentation

torch.manual_seed(1412)
config = UperNetConfig(hidden_size=128, auxiliary_channels=64, auxiliary_in_channels=1024, num_labels=30)
model = UperNetForSemanticSegmentation(config).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
model.train()
for step in range(4):
    for part in range(2):
        x = torch.randn(32, 3, 128, 160).to("cuda", memory_format=torch.channels_last)
        y = torch.randint(0, 30, (32, 128, 160))
        y[:, -6:] = 255
        loss = model(pixel_values=x, labels=y.cuda()).loss / 2
        loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    print(step, 2 * loss.item())
