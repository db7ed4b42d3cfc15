"""Weights in 4 bits that each layer unpacks, low-rank adapters on them, checkpointing, a paged-like optimizer state."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Packed(nn.Module):
    """Two numbers of 4 bits in a byte, a scale for each block of 64."""

    def __init__(self, a, b, rank=16):
        super().__init__()
        self.shape = (b, a)
        self.register_buffer("data", torch.randint(0, 256, (a * b // 2,), dtype=torch.uint8))
        self.register_buffer("scale", torch.rand(a * b // 64, 1, dtype=torch.half) * 0.01)
        self.register_buffer("table", torch.linspace(-1, 1, 16, dtype=torch.half))
        self.A, self.B = nn.Parameter(torch.randn(rank, a) * 0.01), nn.Parameter(torch.zeros(b, rank))
        self.drop = nn.Dropout(0.05)

    def weight(self):
        codes = torch.stack([self.data >> 4, self.data & 15], dim=1).flatten()
        return (self.table[codes.int()].view(-1, 64) * self.scale).view(self.shape).to(torch.bfloat16)

    def forward(self, x):
        low = F.linear(F.linear(self.drop(x), self.A.to(x.dtype)), self.B.to(x.dtype))
        return F.linear(x, self.weight()) + 2.0 * low


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width, dtype=torch.bfloat16), nn.RMSNorm(width, dtype=torch.bfloat16)
        self.q, self.k, self.v, self.o = (Packed(width, width) for _ in range(4))
        self.up, self.down = Packed(width, 3 * width), Packed(3 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


random.seed(36)
torch.manual_seed(36)
embed = nn.Embedding(32000, 2048, dtype=torch.bfloat16).cuda().requires_grad_(False)
layers = nn.ModuleList(Layer(2048, 16) for _ in range(6)).cuda()
optimizer = torch.optim.AdamW([p for n, p in layers.named_parameters() if n.endswith((".A", ".B"))], lr=2e-4)
for step in range(6):
    ids = torch.randint(0, 32000, (random.choice([2, 4]), random.randrange(400, 1000)), device="cuda")
    x = embed(ids).requires_grad_()
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    loss = F.cross_entropy(F.linear(x[:, :-1], embed.weight).float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, ids.shape, loss.item())
