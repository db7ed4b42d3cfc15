"""A U-Net that learns to remove noise from images: group norm, attention at the lowest level, cuDNN benchmark, EMA."""
import copy
import math

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, cin, cout, emb=256):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.e = nn.Linear(emb, cout)
        self.n2, self.c2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.e(t)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n, self.qkv, self.out = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.n(x)).reshape(b, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, ch=(96, 192, 384)):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256))
        self.first = nn.Conv2d(3, ch[0], 3, padding=1)
        self.down = nn.ModuleList([Block(ch[max(0, i - 1)], ch[i]) for i in range(3)])
        self.mid = nn.ModuleList([Block(ch[2], ch[2]), Attention(ch[2]), Block(ch[2], ch[2])])
        self.up = nn.ModuleList([Block(2 * ch[i], ch[max(0, i - 1)]) for i in (2, 1, 0)])
        self.last = nn.Conv2d(ch[0], 3, 3, padding=1)

    def forward(self, x, t):
        f = torch.exp(-math.log(10000) * torch.arange(32, device=x.device) / 32)
        t = self.time(torch.cat([(t[:, None] * f).sin(), (t[:, None] * f).cos()], 1))
        x, kept = self.first(x), []
        for i, d in enumerate(self.down):
            x = d(x if i == 0 else F.avg_pool2d(x, 2), t)
            kept.append(x)
        x = self.mid[2](self.mid[1](self.mid[0](x, t)), t)
        for i, u in enumerate(self.up):
            x = u(torch.cat([x, kept.pop()], 1), t)
            x = F.interpolate(x, scale_factor=2, mode="nearest") if i < 2 else x
        return self.last(x)


torch.manual_seed(9)
torch.backends.cudnn.benchmark = True
net = UNet().cuda()
ema = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device="cuda"), 0)
for step in range(8):
    x0 = torch.randn(32 if step != 5 else 20, 3, 64, 64, device="cuda")
    t = torch.randint(0, 1000, (len(x0),), device="cuda")
    a = alphas[t].view(-1, 1, 1, 1)
    noise = torch.randn_like(x0)
    loss = F.mse_loss(net(a.sqrt() * x0 + (1 - a).sqrt() * noise, t.float()), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(net.parameters(), ema.parameters()):
            q.lerp_(p, 0.001)
with torch.no_grad():
    x = torch.randn(8, 3, 64, 64, device="cuda")
    for i in (999, 500, 0):
        x = x - 0.1 * ema(x, torch.full((8,), float(i), device="cuda"))
print("loss", loss.item())
