"""A latent diffusion U-Net with attention to a text: base weights frozen in float16, low-rank additions in float32, a weighted noise loss, then sampling with guidance."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1115)


class Lora(nn.Module):
    def __init__(self, i, o, rank=8):
        super().__init__()
        self.base = nn.Linear(i, o).half().requires_grad_(False)
        self.a, self.b = nn.Linear(i, rank, bias=False), nn.Linear(rank, o, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Res(nn.Module):
    def __init__(self, i, o, t=512):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(32, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(t, o)
        self.n2, self.c2 = nn.GroupNorm(32, o), nn.Conv2d(o, o, 3, padding=1)
        self.short = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        self.half().requires_grad_(False)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.short(x) + self.c2(F.silu(self.n2(h)))


class Cross(nn.Module):
    def __init__(self, c, text=384, heads=8):
        super().__init__()
        self.heads, self.norm, self.ln = heads, nn.GroupNorm(32, c).half(), nn.LayerNorm(c).half()
        self.sq, self.sk, self.sv, self.so = Lora(c, c), Lora(c, c), Lora(c, c), Lora(c, c)
        self.q, self.k, self.v, self.o = Lora(c, c), Lora(text, c), Lora(text, c), Lora(c, c)
        for m in (self.norm, self.ln):
            m.requires_grad_(False)

    def attend(self, q, k, v):
        q, k, v = (u.unflatten(-1, (self.heads, -1)).transpose(1, 2) for u in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, x, text):
        y = self.norm(x).flatten(2).transpose(1, 2)
        y = y + self.so(self.attend(self.sq(y), self.sk(y), self.sv(y)))
        z = self.ln(y)
        y = y + self.o(self.attend(self.q(z), self.k(text), self.v(text)))
        return x + y.transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    def __init__(self, w=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(w, 512), nn.SiLU(), nn.Linear(512, 512)).half().requires_grad_(False)
        self.inp, self.out = nn.Conv2d(4, w, 3, padding=1), nn.Sequential(nn.GroupNorm(32, w), nn.SiLU(), nn.Conv2d(w, 4, 3, padding=1))
        self.d1, self.a1, self.down1 = Res(w, w), Cross(w), nn.Conv2d(w, w, 3, 2, 1)
        self.d2, self.a2, self.down2 = Res(w, 2 * w), Cross(2 * w), nn.Conv2d(2 * w, 2 * w, 3, 2, 1)
        self.m1, self.am, self.m2 = Res(2 * w, 4 * w), Cross(4 * w), Res(4 * w, 2 * w)
        self.u2, self.b2, self.u1, self.b1 = Res(4 * w, w), Cross(w), Res(2 * w, w), Cross(w)
        self.w = w
        for m in (self.inp, self.out, self.down1, self.down2):
            m.half().requires_grad_(False)

    def forward(self, x, t, text):
        f = torch.exp(-math.log(10000) * torch.arange(self.w // 2, device=x.device) / (self.w // 2))
        t = self.time(torch.cat([(t[:, None] * f).sin(), (t[:, None] * f).cos()], 1).half())
        a = self.a1(self.d1(self.inp(x), t), text)
        b = self.a2(self.d2(self.down1(a), t), text)
        m = self.m2(self.am(self.m1(self.down2(b), t), text), t)
        m = self.b2(self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1), t), text)
        return self.out(self.b1(self.u1(torch.cat([F.interpolate(m, scale_factor=2), a], 1), t), text))


net = UNet().cuda()
own = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(own, 1e-4, weight_decay=1e-2)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0).cuda()
for step in range(7):
    x, text = torch.randn(16, 4, 48, 48, device="cuda"), torch.randn(16, 77, 384, device="cuda")
    t, noise = torch.randint(0, 1000, (16,), device="cuda"), torch.randn_like(x)
    a = kept[t][:, None, None, None]
    weight = torch.clamp(a / (1 - a), max=5.0) / (a / (1 - a))
    with torch.autocast("cuda", torch.float16):
        guess = net(a.sqrt() * x + (1 - a).sqrt() * noise, t.float(), text)
    loss = (weight * (guess.float() - noise).pow(2)).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(own, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    x, text, empty = torch.randn(8, 4, 64, 64, device="cuda"), torch.randn(8, 77, 384, device="cuda"), torch.zeros(8, 77, 384, device="cuda")
    for t in range(900, 0, -150):
        both = net(torch.cat([x, x]), torch.full((16,), float(t), device="cuda"), torch.cat([text, empty])).float()
        with_text, without = both.chunk(2)
        x = x - 0.1 * (without + 5 * (with_text - without))
    print(x.std().item())
