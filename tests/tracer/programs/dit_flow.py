"""A diffusion transformer on latents with rectified flow: modulation by time and label, dropped labels, moving averages kept in float32, then Heun steps with guidance and a small decoder."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1015)
D, SIDE = 384, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D, elementwise_affine=False), nn.LayerNorm(D, elementwise_affine=False)
        self.qkv, self.out, self.mod = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, 6 * D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU("tanh"), nn.Linear(4 * D, D))

    def forward(self, x, c):
        s1, b1, g1, s2, b2, g2 = self.mod(F.silu(c))[:, None].chunk(6, -1)
        q, k, v = self.qkv(self.n1(x) * (1 + s1) + b1).view(*x.shape[:2], 3, 6, -1).permute(2, 0, 3, 1, 4)
        x = x + g1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + g2 * self.mlp(self.n2(x) * (1 + s2) + b2)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.place = nn.Conv2d(4, D, 2, 2), nn.Parameter(torch.randn(1, (SIDE // 2) ** 2, D) * 0.02)
        self.time, self.label = nn.Sequential(nn.Linear(256, D), nn.SiLU(), nn.Linear(D, D)), nn.Embedding(101, D)
        self.blocks, self.norm, self.mod, self.out = nn.ModuleList(Block() for _ in range(8)), nn.LayerNorm(D, elementwise_affine=False), nn.Linear(D, 2 * D), nn.Linear(D, 16)

    def forward(self, x, t, y):
        angle = t[:, None] * 1000 * torch.exp(-9.21 * torch.arange(128, device=t.device) / 128)
        c = self.time(torch.cat([angle.cos(), angle.sin()], -1)) + self.label(y)
        h = self.inside(x).flatten(2).transpose(1, 2) + self.place
        for b in self.blocks:
            h = b(h, c)
        s, b = self.mod(F.silu(c))[:, None].chunk(2, -1)
        h = self.out(self.norm(h) * (1 + s) + b)
        return F.pixel_shuffle(h.transpose(1, 2).unflatten(2, (SIDE // 2, SIDE // 2)), 2)


net = DiT().cuda()
ema = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.AdamW(net.parameters(), 2e-4, weight_decay=0, foreach=True)
for step in range(8):
    x, y = torch.randn(40, 4, SIDE, SIDE, device="cuda"), torch.randint(0, 100, (40,), device="cuda")
    y = torch.where(torch.rand(40, device="cuda") < 0.1, 100, y)
    t, noise = torch.randn(40, device="cuda").sigmoid(), torch.randn_like(x)
    mixed = (1 - t)[:, None, None, None] * x + t[:, None, None, None] * noise
    with torch.autocast("cuda", torch.bfloat16):
        v = net(mixed, t, y)
    loss = F.mse_loss(v.float(), noise - x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(ema.parameters()), list(net.parameters()), 0.001)
    print(step, loss.item())
decoder = nn.Sequential(nn.Conv2d(4, 128, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(128, 96, 3, padding=1), nn.GroupNorm(8, 96), nn.SiLU(),
                        nn.Upsample(scale_factor=4), nn.Conv2d(96, 48, 3, padding=1), nn.GroupNorm(8, 48), nn.SiLU(), nn.Conv2d(48, 3, 3, padding=1)).cuda()
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    z, y = torch.randn(16, 4, SIDE, SIDE, device="cuda"), torch.randint(0, 100, (16,), device="cuda")

    def guided(z, t):
        a, b = ema(torch.cat([z, z]), torch.full((32,), t, device="cuda"), torch.cat([y, torch.full_like(y, 100)])).float().chunk(2)
        return b + 4 * (a - b)

    for i in range(6, 0, -1):
        first = guided(z, i / 6)
        second = guided(z - first / 6, (i - 1) / 6)
        z = z - (first + second) / 12
    for part in z.split(4):
        print(decoder(part).float().std().item())
