"""Adapters of low rank with a magnitude (DoRA) on a frozen bfloat16 transformer: layers checkpointed, accumulation, adapters merged, then scored without them."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(820)
D = 1024


class DoRA(nn.Module):
    def __init__(self, base, rank=16, alpha=32):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.size = nn.Parameter(base.weight.float().norm(dim=1))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.drop = nn.Dropout(0.05)

    def forward(self, x):
        delta = F.linear(F.linear(self.drop(x), self.a.to(x.dtype)), self.b.to(x.dtype)) * self.scale
        length = (self.base.weight.float() + self.scale * (self.b @ self.a)).norm(dim=1).detach()
        return (self.base(x) + delta) * (self.size / length).to(x.dtype)

    @torch.no_grad()
    def merge(self):
        w = self.base.weight.float() + self.scale * (self.b @ self.a)
        self.base.weight.copy_(w * (self.size / w.norm(dim=1))[:, None])
        return self.base


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(D, 2816, bias=False), nn.Linear(D, 2816, bias=False), nn.Linear(2816, D, bias=False)

    def forward(self, x):
        h = self.n1(x)
        q, k, v = (f(h).view(*x.shape[:2], 16, 64).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


words, blocks, norm = nn.Embedding(20000, D), nn.ModuleList(Block() for _ in range(10)), nn.RMSNorm(D)
for m in (words, blocks, norm):
    m.to("cuda", torch.bfloat16).requires_grad_(False)
for b in blocks:
    for name in ("q", "v", "down"):
        setattr(b, name, DoRA(getattr(b, name)).cuda())
trained = [p for p in blocks.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, 1e-4)


def score(ids, save=True):
    x = words(ids[:, :-1])
    for b in blocks:
        x = checkpoint(b, x, use_reentrant=False) if save else b(x)
    return F.cross_entropy(F.linear(norm(x), words.weight).float().flatten(0, 1), ids[:, 1:].flatten())


for step in range(4):
    for _ in range(2):
        loss = score(torch.randint(0, 20000, (4, 769)).cuda()) / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
for b in blocks:
    for name in ("q", "v", "down"):
        setattr(b, name, getattr(b, name).merge())
with torch.no_grad():
    print(score(torch.randint(0, 20000, (8, 769)).cuda(), False).item())
