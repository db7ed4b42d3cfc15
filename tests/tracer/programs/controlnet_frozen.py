"""ControlNet: a frozen latent U-Net with cross attention, a copy of its encoder with zero convolutions that trains, bfloat16."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(105)


class Residual(nn.Module):
    def __init__(self, c, o, t):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, c), nn.Conv2d(c, o, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, o), nn.Conv2d(o, o, 3, padding=1)
        self.time, self.skip = nn.Linear(t, o), nn.Conv2d(c, o, 1) if c != o else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Cross(nn.Module):
    def __init__(self, c, text=512, heads=8):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, c)
        self.n1, self.n2, self.n3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.o1 = nn.Linear(c, 3 * c, bias=False), nn.Linear(c, c)
        self.q, self.kv, self.o2 = nn.Linear(c, c, bias=False), nn.Linear(text, 2 * c, bias=False), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

    def attend(self, q, k, v):
        q, k, v = [y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2) for y in (q, k, v)]
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, x, text):
        b, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        y = y + self.o1(self.attend(*self.qkv(self.n1(y)).chunk(3, -1)))
        y = y + self.o2(self.attend(self.q(self.n2(y)), *self.kv(text).chunk(2, -1)))
        a, g = self.up(self.n3(y)).chunk(2, -1)
        y = y + self.down(a * F.gelu(g))
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class Encoder(nn.Module):
    def __init__(self, widths=(192, 384, 768), t=768):
        super().__init__()
        self.first = nn.Conv2d(4, widths[0], 3, padding=1)
        self.time = nn.Sequential(nn.Linear(192, t), nn.SiLU(), nn.Linear(t, t))
        self.blocks, c = nn.ModuleList(), widths[0]
        for i, w in enumerate(widths):
            self.blocks.append(nn.ModuleList([Residual(c, w, t), Cross(w), Residual(w, w, t), Cross(w),
                                              nn.Conv2d(w, w, 3, 2, 1) if i < 2 else nn.Identity()]))
            c = w
        self.middle = nn.ModuleList([Residual(c, c, t), Cross(c), Residual(c, c, t)])

    def forward(self, x, steps, text, hint=None):
        f = torch.exp(-math.log(10000) * torch.arange(96, device=x.device) / 96)
        a = steps[:, None].float() * f
        t = self.time(torch.cat([a.sin(), a.cos()], 1))
        x = self.first(x)
        if hint is not None:
            x = x + hint
        skips = [x]
        for r1, c1, r2, c2, down in self.blocks:
            x = c1(r1(x, t), text)
            skips.append(x)
            x = c2(r2(x, t), text)
            skips.append(x)
            x = down(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, t), text), t)
        return x, skips, t


class Decoder(nn.Module):
    def __init__(self, widths=(768, 384, 192), t=768):
        super().__init__()
        self.blocks, c = nn.ModuleList(), widths[0]
        for w in widths:
            self.blocks.append(nn.ModuleList([Residual(c + w, w, t), Cross(w), Residual(w + w, w, t), Cross(w)]))
            c = w
        self.out = nn.Sequential(nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 4, 3, padding=1))

    def forward(self, x, skips, t, text):
        skips = list(skips)
        for i, (r1, c1, r2, c2) in enumerate(self.blocks):
            if i:
                x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = c1(r1(torch.cat([x, skips.pop()], 1), t), text)
            x = c2(r2(torch.cat([x, skips.pop()], 1), t), text)
        return self.out(x)


encoder, decoder = Encoder().cuda().requires_grad_(False), Decoder().cuda().requires_grad_(False)
control = copy.deepcopy(encoder).requires_grad_(True)
hint = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(), nn.Conv2d(32, 96, 3, 2, 1), nn.SiLU(),
                     nn.Conv2d(96, 192, 3, 2, 1)).cuda()
zeros = nn.ModuleList(nn.Conv2d(c, c, 1) for c in (192, 192, 192, 384, 384, 768, 768, 768)).cuda()
for z in zeros:
    nn.init.zeros_(z.weight)
    nn.init.zeros_(z.bias)
trained = [*control.parameters(), *hint.parameters(), *zeros.parameters()]
optimizer = torch.optim.AdamW(trained, lr=1e-5)
alphas = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, 1000), 0).cuda()
for step in range(6):
    n = 4
    latents, text = torch.randn(n, 4, 64, 64, device="cuda"), torch.randn(n, 77, 512, device="cuda")
    edges, noise = torch.rand(n, 3, 512, 512).cuda(), torch.randn_like(latents)
    t = torch.randint(0, 1000, (n,), device="cuda")
    a = alphas[t][:, None, None, None]
    noisy = a.sqrt() * latents + (1 - a).sqrt() * noise
    with torch.autocast("cuda", torch.bfloat16):
        cm, cs, _ = control(noisy, t, text, hint(edges))
        with torch.no_grad():
            m, s, time = encoder(noisy, t, text)
        m = m + zeros[-1](cm)
        s = [x + z(y) for x, y, z in zip(s, cs, zeros)]
        predicted = decoder(m, s, time, text)
    loss = F.mse_loss(predicted.float(), noise)
    loss.backward()
    nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
