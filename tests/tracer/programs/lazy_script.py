"""Lazy layers that learn their sizes at the first batch, and a scripted block with batch norm."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, c: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.dropout(y, 0.1, self.training)
        return F.relu(x + self.bn2(self.conv2(y)))


@torch.jit.script
def squeeze(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(F.linear(x.mean(dim=(2, 3)), w))
    return x * s[:, :, None, None]


class Net(nn.Module):
    def __init__(self, c=96):
        super().__init__()
        self.first = nn.Sequential(nn.LazyConv2d(c, 5, 2, 2), nn.LazyBatchNorm2d(), nn.ReLU())
        self.blocks = nn.ModuleList(torch.jit.script(Block(c)) for _ in range(4))
        self.scale = nn.Parameter(torch.randn(c, c) * 0.1)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.LazyLinear(1024), nn.ReLU(), nn.LazyLinear(20))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = squeeze(block(x), self.scale)
        return self.head(x)


torch.manual_seed(40)
model = Net().cuda()
model(torch.randn(2, 3, 128, 128, device="cuda"))
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(64, 3, 128 + 32 * (step % 2), 128, device="cuda")
    loss = F.cross_entropy(model(x), torch.randint(0, 20, (64,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
