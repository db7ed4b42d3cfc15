"""A compiled segmentation network: a U-Net with squeeze and excitation, channels_last, bfloat16 autocast within torch.compile, Dice and boundary losses outside of it, SGD with a polynomial schedule, flips averaged."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(412)


class Block(nn.Module):
    def __init__(self, c, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(c, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(o, o // 8, 1), nn.SiLU(), nn.Conv2d(o // 8, o, 1), nn.Sigmoid())

    def forward(self, x):
        x = self.net(x)
        return x * self.gate(x)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256), classes=8):
        super().__init__()
        self.down = nn.ModuleList(Block(a, b) for a, b in zip((3, *widths), widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join, self.head = nn.ModuleList(Block(2 * a, a) for a in widths[:-1]), nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([self.up[i](x), kept[i]], 1))
        return self.head(x)


net = UNet().cuda().to(memory_format=torch.channels_last)
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 50, 0.9)
for step in range(5):
    x = torch.rand(8, 3, 192, 192, device="cuda").contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 8, (8, 192, 192), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        out = model(x)
    p, hot = out.float().softmax(1), F.one_hot(y, 8).permute(0, 3, 1, 2).float()
    dice = 1 - (2 * (p * hot).sum((2, 3)) + 1) / (p.sum((2, 3)) + hot.sum((2, 3)) + 1)
    edge = F.max_pool2d(hot, 3, 1, 1) - hot
    loss = dice.mean() + F.cross_entropy(out.float(), y) + (edge * (p - hot).abs()).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 12)
    optimizer.step()
    schedule.step()
    print(step, loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    x = torch.rand(2, 3, 384, 384, device="cuda").contiguous(memory_format=torch.channels_last)
    print(sum(net(x.flip(d)).flip(d) for d in ((), (2,), (3,), (2, 3))).argmax(1).shape)
