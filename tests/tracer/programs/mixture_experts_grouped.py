"""Experts in one grouped product: tokens sorted by their expert, offsets, torch._grouped_mm, a loss that balances the load."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(84)


class Experts(nn.Module):
    def __init__(self, width, inner, count, top):
        super().__init__()
        self.top, self.count = top, count
        self.gate = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, inner) * 0.02)
        self.down = nn.Parameter(torch.randn(count, inner, width) * 0.02)

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        scores = self.gate(tokens.float()).softmax(-1)
        weight, expert = scores.topk(self.top, dim=-1)
        order = expert.flatten().argsort(stable=True)
        counts = torch.bincount(expert.flatten(), minlength=self.count)
        offsets = counts.cumsum(0).to(torch.int32)
        moved = tokens.to(torch.bfloat16)[order // self.top]
        inner = F.silu(torch._grouped_mm(moved, self.up.to(torch.bfloat16), offs=offsets))
        out = torch._grouped_mm(inner, self.down.to(torch.bfloat16), offs=offsets)
        out = out.float() * weight.flatten()[order].unsqueeze(-1)
        joined = torch.zeros_like(tokens, dtype=torch.float32).index_add_(0, order // self.top, out)
        balance = (scores.mean(0) * counts.float() / counts.sum()).sum() * self.count
        return joined.view_as(x).to(x.dtype), balance


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.experts = nn.Linear(width, 3 * width), nn.Linear(width, width), Experts(width, 2 * width, 16, 2)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, 8, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        y, balance = self.experts(self.norm2(x))
        return x + y, balance


layers = nn.ModuleList([Layer(512) for _ in range(6)]).cuda()
embed, head = nn.Embedding(12000, 512).cuda(), nn.Linear(512, 12000).cuda()
parameters = [*layers.parameters(), *embed.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=3e-4, fused=True)
for step in range(6):
    ids = torch.randint(0, 12000, (8, 512)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        x, extra = embed(ids), 0
        for layer in layers:
            x, balance = layer(x)
            extra = extra + balance
        loss = F.cross_entropy(head(x)[:, :-1].reshape(-1, 12000), ids[:, 1:].reshape(-1)) + 0.01 * extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
