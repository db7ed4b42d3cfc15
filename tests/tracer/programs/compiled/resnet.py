"""Residual blocks in channels_last under torch.compile and bfloat16 autocast."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, c, o, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.d = nn.Identity()
        if stride != 1 or c != o:
            self.d = nn.Sequential(nn.Conv2d(c, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.d(x))


model = nn.Sequential(
    nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
    Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000),
).cuda().to(memory_format=torch.channels_last)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
compiled = torch.compile(model)
for step in range(4):
    x = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    t = torch.randint(0, 1000, (64,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(compiled(x), t)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
