"""A model that makes tables of numbers and categories out of noise, with attention along columns and along rows: AdamW tensor by tensor, float16 with a scaler, batches of 8 tables, tables of other sizes are drawn at the end."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1616)
D, HEADS, DEPTH, NUMBERS, KINDS, STEPS = 192, 6, 6, 14, (3, 4, 6, 8, 12, 12), 200


class Block(nn.Module):
    """Attention between the columns of a row, then between the rows of a column; shift and scale by the time."""

    def __init__(self):
        super().__init__()
        self.norms, self.mixed = nn.ModuleList(nn.LayerNorm(D, elementwise_affine=False) for _ in range(3)), nn.Linear(D, 6 * D)
        self.qkv, self.out = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(2)), nn.ModuleList(nn.Linear(D, D) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Dropout(0.05), nn.Linear(4 * D, D))

    def forward(self, x, t):
        shifts = self.mixed(F.silu(t))[:, None, None].chunk(6, -1)
        for i in range(2):
            y = self.norms[i](x) * (1 + shifts[2 * i]) + shifts[2 * i + 1]
            y = y if i == 0 else y.transpose(1, 2)
            q, k, v = self.qkv[i](y).unflatten(-1, (3, HEADS, -1)).permute(3, 0, 1, 4, 2, 5).unbind(0)
            y = self.out[i](F.scaled_dot_product_attention(q, k, v).transpose(2, 3).flatten(3))
            x = x + (y if i == 0 else y.transpose(1, 2))
        return x + self.mlp(self.norms[2](x) * (1 + shifts[4]) + shifts[5])


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.number, self.column = nn.Linear(1, D), nn.Parameter(torch.randn(NUMBERS + len(KINDS), D) * 0.02)
        self.kind = nn.ModuleList(nn.Embedding(n, D) for n in KINDS)
        self.time = nn.Sequential(nn.Linear(64, D), nn.SiLU(), nn.Linear(D, D))
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(DEPTH)), nn.LayerNorm(D)
        self.noise, self.guess = nn.Linear(D, 1), nn.ModuleList(nn.Linear(D, n) for n in KINDS)

    def forward(self, numbers, kinds, t):
        angle = t[:, None] * torch.exp(torch.arange(32, device=t.device) * (-math.log(1000) / 32))
        t = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        words = torch.stack([e(k) for e, k in zip(self.kind, kinds.unbind(-1))], 2)
        x = torch.cat([self.number(numbers[..., None]), words.to(t.dtype)], 2) + self.column
        for block in self.blocks:
            x = block(x, t)
        x = self.norm(x)
        return self.noise(x[:, :, :NUMBERS]).squeeze(-1), [g(x[:, :, NUMBERS + i]) for i, g in enumerate(self.guess)]


clean = torch.cumprod(1 - torch.linspace(1e-3, 0.05, STEPS), 0).cuda()
model = Tables().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 5e-4, foreach=False)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(5):
    numbers = torch.randn(8, 192, NUMBERS).cuda()
    kinds = torch.stack([torch.randint(0, n, (8, 192)) for n in KINDS], 2).cuda()
    t = torch.randint(0, STEPS, (8,)).cuda()
    a, noise = clean[t][:, None, None], torch.randn_like(numbers)
    other = torch.stack([torch.randint(0, n, (8, 192), device="cuda") for n in KINDS], 2)
    noisy = torch.where(torch.rand(kinds.shape, device="cuda") < a, kinds, other)
    with torch.autocast("cuda", torch.float16):
        guess, logits = model(a.sqrt() * numbers + (1 - a).sqrt() * noise, noisy, t.float())
        loss = F.mse_loss(guess.float(), noise) + sum(F.cross_entropy(g.flatten(0, 1), kinds[..., i].flatten()) for i, g in enumerate(logits)) / len(KINDS)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for rows in (96, 256, 384):
        x = torch.randn(8, rows, NUMBERS).cuda()
        kinds = torch.stack([torch.randint(0, n, (8, rows)) for n in KINDS], 2).cuda()
        for i in range(STEPS - 1, 0, -40):
            noise, logits = model(x, kinds, torch.full((8,), float(i)).cuda())
            a, b = clean[i], clean[max(i - 40, 0)]
            x = b.sqrt() * (x - (1 - a).sqrt() * noise) / a.sqrt() + (1 - b).sqrt() * noise
            kinds = torch.stack([torch.multinomial(g.float().softmax(-1).flatten(0, 1), 1).view(8, rows) for g in logits], 2)
        print(rows, x.std().item(), kinds.float().mean().item())
