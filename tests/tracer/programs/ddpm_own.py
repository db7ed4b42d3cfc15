"""A diffusion model of small pictures: a U-Net with times and attention in float32, an exponential average, then pictures in few steps (DDIM)."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(812)


def embed(t, d):
    f = torch.exp(-math.log(10000) * torch.arange(d // 2, device=t.device) / (d // 2))
    a = t[:, None].float() * f
    return torch.cat([a.sin(), a.cos()], 1)


class Res(nn.Module):
    def __init__(self, c, o, time=256):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(16, c), nn.Conv2d(c, o, 3, 1, 1), nn.Linear(time, o)
        self.n2, self.c2, self.skip = nn.GroupNorm(16, o), nn.Conv2d(o, o, 3, 1, 1), nn.Conv2d(c, o, 1) if c != o else nn.Identity()

    def forward(self, x, t):
        y = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.dropout(F.silu(self.n2(y)), 0.1, self.training))


class Look(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n, self.qkv, self.o = nn.GroupNorm(16, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.n(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        y = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self.o(y.transpose(1, 2).reshape(x.shape))


class UNet(nn.Module):
    def __init__(self, base=96):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(base, 256), nn.SiLU(), nn.Linear(256, 256))
        self.base, widths = base, [base, 2 * base, 2 * base]
        self.first = nn.Conv2d(3, base, 3, 1, 1)
        self.down, self.up, have, c = nn.ModuleList(), nn.ModuleList(), [base], base
        for i, w in enumerate(widths):
            for _ in range(2):
                self.down.append(nn.ModuleList([Res(c, w), Look(w) if i == 1 else nn.Identity()]))
                have.append(c := w)
            if i < 2:
                self.down.append(nn.Conv2d(c, c, 3, 2, 1))
                have.append(c)
        self.middle = nn.ModuleList([Res(c, c), Look(c), Res(c, c)])
        for i, w in reversed(list(enumerate(widths))):
            for _ in range(3):
                self.up.append(nn.ModuleList([Res(c + have.pop(), w), Look(w) if i == 1 else nn.Identity()]))
                c = w
            if i:
                self.up.append(nn.Conv2d(c, c, 3, 1, 1))
        self.last = nn.Sequential(nn.GroupNorm(16, c), nn.SiLU(), nn.Conv2d(c, 3, 3, 1, 1))

    def forward(self, x, t):
        t = self.time(embed(t, self.base))
        x = self.first(x)
        kept = [x]
        for m in self.down:
            x = m(x) if isinstance(m, nn.Conv2d) else m[1](m[0](x, t))
            kept.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, t)), t)
        for m in self.up:
            x = m(F.interpolate(x, scale_factor=2.0, mode="nearest")) if isinstance(m, nn.Conv2d) else m[1](m[0](torch.cat([x, kept.pop()], 1), t))
        return self.last(x)


net = UNet().cuda()
slow = copy.deepcopy(net).eval().requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), 2e-4)
alpha = torch.linspace(0.9999, 0.98, 1000, device="cuda").cumprod(0)
for step in range(6):
    x, t = torch.rand(32, 3, 32, 32).mul(2).sub(1).cuda(), torch.randint(0, 1000, (32,), device="cuda")
    noise, a = torch.randn_like(x), alpha[t][:, None, None, None]
    loss = F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(slow.parameters(), net.parameters()):
            p.lerp_(q, 0.01)
    print(step, loss.item())
with torch.no_grad():
    x = torch.randn(48, 3, 32, 32, device="cuda")
    times = list(range(999, -1, -100))
    for i, t in enumerate(times):
        a, b = alpha[t], alpha[times[i + 1]] if i + 1 < len(times) else torch.ones((), device="cuda")
        e = slow(x, torch.full((48,), t, device="cuda"))
        x = b.sqrt() * ((x - (1 - a).sqrt() * e) / a.sqrt()).clamp(-1, 1) + (1 - b).sqrt() * e
print(x.mean().item())
