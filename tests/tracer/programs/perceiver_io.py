"""A Perceiver: pixels with Fourier positions read by a few latents, shared blocks of attention, queries that ask for labels and for pixels back."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(201)


class Attention(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.heads, self.norm, self.other = heads, nn.LayerNorm(width), nn.LayerNorm(context)
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(context, 2 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, context=None):
        h = self.norm(x)
        k, v = self.kv(h if context is None else self.other(context)).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(h), k, v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Perceiver(nn.Module):
    def __init__(self, size, bands=32, latents=256, width=512, classes=1000):
        super().__init__()
        grid = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, size)] * 2, indexing="ij"), -1).flatten(0, 1)
        waves = grid[..., None] * torch.linspace(1, size / 2, bands) * math.pi
        self.register_buffer("places", torch.cat([waves.sin().flatten(1), waves.cos().flatten(1), grid], -1))
        context = 3 + self.places.shape[1]
        self.latents = nn.Parameter(torch.randn(latents, width) * 0.02)
        self.read = nn.ModuleList(Attention(width, context, 1) for _ in range(2))
        self.think = nn.ModuleList(Attention(width, width, 8) for _ in range(4))
        self.ask, self.label = nn.Parameter(torch.randn(1, width) * 0.02), nn.Linear(width, classes)
        self.answer, self.query = Attention(width, width, 1), nn.Linear(self.places.shape[1], width)
        self.paint = nn.Linear(width, 3)

    def forward(self, images, asked):
        b = len(images)
        pixels = torch.cat([images.flatten(2).transpose(1, 2), self.places.expand(b, -1, -1)], -1)
        x = self.latents.expand(b, -1, -1)
        for read in self.read:
            x = read(x, pixels)
            for think in self.think:
                x = think(x)
        queries = torch.cat([self.ask.expand(b, -1, -1), self.query(self.places[asked]).expand(b, -1, -1)], 1)
        y = self.answer(queries, x)
        return self.label(y[:, 0]), self.paint(y[:, 1:])


model = Perceiver(112).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for step in range(8):
    images, labels = torch.randn(16, 3, 112, 112).cuda(), torch.randint(0, 1000, (16,)).cuda()
    asked = torch.randperm(112 * 112)[:2000].cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits, colours = model(images, asked)
        loss = F.cross_entropy(logits, labels) + F.mse_loss(colours, images.flatten(2).transpose(1, 2)[:, asked])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    if step % 4 == 3:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            right = [(model(torch.randn(24, 3, 112, 112).cuda(), asked[:1])[0].argmax(-1) == 3).sum() for _ in range(2)]
        model.train()
        print(step, loss.item(), torch.stack(right).sum().item())
