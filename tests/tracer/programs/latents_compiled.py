"""A U-Net, compiled, that removes noise from the latents of a frozen encoder of pictures, in channels last: AdamW tensor by tensor, float16 with a scaler, four parts of 8 a step, gradients kept as zeros, averaged weights draw samples."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1517)
W = 128


class Res(nn.Module):
    def __init__(self, i, o, timed=False):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(16, i), nn.Conv2d(i, o, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(16, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        self.time = nn.Linear(4 * W, o) if timed else None

    def forward(self, x, t=None):
        y = self.c1(F.silu(self.n1(x)))
        if self.time is not None:
            y = y + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(y)))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(16, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).unflatten(1, (3, 4, -1)).transpose(-2, -1).unbind(1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(-2, -1).flatten(1, 2).unflatten(2, x.shape[2:]))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(W, 4 * W), nn.SiLU(), nn.Linear(4 * W, 4 * W))
        self.first, self.last = nn.Conv2d(4, W, 3, padding=1), nn.Sequential(nn.GroupNorm(16, W), nn.SiLU(), nn.Conv2d(W, 4, 3, padding=1))
        self.d1, self.d2, self.d3 = Res(W, W, True), Res(W, 2 * W, True), Res(2 * W, 3 * W, True)
        self.s1, self.s2 = nn.Conv2d(W, W, 3, 2, 1), nn.Conv2d(2 * W, 2 * W, 3, 2, 1)
        self.m1, self.mid, self.m2 = Res(3 * W, 3 * W, True), Attention(3 * W), Res(3 * W, 3 * W, True)
        self.u3, self.u2, self.u1 = Res(6 * W, 2 * W, True), Res(4 * W, W, True), Res(2 * W, W, True)

    def forward(self, x, t):
        angle = t[:, None] * torch.exp(torch.arange(W // 2, device=t.device) * (-math.log(10000) / (W // 2)))
        t = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        a = self.d1(self.first(x), t)
        b = self.d2(self.s1(a), t)
        c = self.d3(self.s2(b), t)
        y = self.m2(self.mid(self.m1(c, t)), t)
        y = self.u3(torch.cat([y, c], 1), t)
        y = self.u2(torch.cat([F.interpolate(y, scale_factor=2.0), b], 1), t)
        return self.last(self.u1(torch.cat([F.interpolate(y, scale_factor=2.0), a], 1), t))


encoder = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), Res(64, 64), nn.Conv2d(64, 64, 3, 2, 1), Res(64, 128), nn.Conv2d(128, 128, 3, 2, 1), Res(128, 128),
                        nn.Conv2d(128, 128, 3, 2, 1), Res(128, 128), nn.GroupNorm(16, 128), nn.SiLU(), nn.Conv2d(128, 8, 3, padding=1))
encoder = encoder.to("cuda", memory_format=torch.channels_last).eval().requires_grad_(False)
model = UNet().to("cuda", memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 2e-4, foreach=False)
scaler = torch.amp.GradScaler("cuda")
clean = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0).cuda()
model.train()
for step in range(4):
    optimizer.zero_grad(set_to_none=False)
    for part in range(4):
        x, t = torch.rand(8, 3, 256, 256).to("cuda", memory_format=torch.channels_last), torch.randint(0, 1000, (8,)).cuda()
        with torch.autocast("cuda", torch.float16):
            with torch.no_grad():
                mean, spread = encoder(x * 2 - 1).float().chunk(2, 1)
                latent = mean + torch.exp(0.5 * spread.clamp(-20, 10)) * torch.randn_like(mean)
            noise, a = torch.randn_like(latent), clean[t][:, None, None, None]
            loss = F.mse_loss(fast(a.sqrt() * latent + (1 - a).sqrt() * noise, t.float()).float(), noise) / 4
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    average.update_parameters(model)
    print(step, 4 * loss.item())
average.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    x = torch.randn(8, 4, 32, 32).to("cuda", memory_format=torch.channels_last)
    for i in range(999, 0, -111):
        t = torch.full((8,), float(i)).cuda()
        noise, a, b = average(x, t).float(), clean[i], clean[i - 111 if i > 111 else 0]
        x = b.sqrt() * (x - (1 - a).sqrt() * noise) / a.sqrt() + (1 - b).sqrt() * noise
    print(x.std().item())
