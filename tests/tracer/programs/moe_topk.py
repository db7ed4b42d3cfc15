"""A transformer whose feed-forward layers are mixtures of experts: each token goes to two experts, chosen by value."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Experts(nn.Module):
    def __init__(self, width, hidden, count):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width))
                                      for _ in range(count)])

    def forward(self, x):
        tokens = x.reshape(-1, x.size(-1))
        weights, chosen = F.softmax(self.gate(tokens).float(), dim=-1).topk(2, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == i)
            out.index_add_(0, rows, expert(tokens[rows]) * weights[rows, slot, None])
        return out.view_as(x)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = nn.MultiheadAttention(width, 16, batch_first=True)
        self.experts = Experts(width, 2816, 8)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.experts(self.n2(x))


random.seed(11)
torch.manual_seed(11)
embed = nn.Embedding(32000, 1024)
model = nn.Sequential(embed, *[Layer(1024) for _ in range(4)], nn.RMSNorm(1024), nn.Linear(1024, 32000, bias=False))
model = model.to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(10):
    ids = torch.randint(0, 32000, (random.choice([4, 8, 12]), random.randrange(200, 1000)), device="cuda")
    logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, tuple(ids.shape), f"{loss.item():.3f}")
