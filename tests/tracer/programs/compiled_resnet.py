"""A small residual network compiled with torch.compile: channels_last, bfloat16, squeeze and excitation, SGD for each tensor list, evaluation that is compiled again for another batch."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1110)


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.down, self.up = nn.Linear(o, o // 8), nn.Linear(o // 8, o)
        self.short = nn.Conv2d(i, o, 1, stride, bias=False) if stride > 1 or i != o else nn.Identity()

    def forward(self, x):
        y = self.nb(self.b(F.silu(self.na(self.a(x)))))
        s = torch.sigmoid(self.up(F.silu(self.down(y.mean((2, 3))))))
        return F.silu(y * s[:, :, None, None] + self.short(x))


class Net(nn.Module):
    def __init__(self, classes=60):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 48, 5, 2, 2, bias=False), nn.BatchNorm2d(48), nn.SiLU())
        self.body = nn.Sequential(Block(48, 64, 1), Block(64, 128, 2), Block(128, 128, 1), Block(128, 256, 2))
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


net = Net().cuda().to(memory_format=torch.channels_last)
fast = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, foreach=True)
for step in range(8):
    x = torch.randn(96, 3, 128, 128, device="cuda").contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 60, (96,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(fast(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for batch in (128, 128, 50):
        print(fast(torch.randn(batch, 3, 128, 128, device="cuda").contiguous(memory_format=torch.channels_last)).argmax(1).float().mean().item())
