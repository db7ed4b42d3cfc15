"""Experts that choose their tokens: a fixed number for each, weights of experts in one tensor, rotary attention, bfloat16 autocast, Lion."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(814)
D, HEADS, EXPERTS = 512, 8, 8


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Block(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.n1, self.n2, self.qkv, self.o = nn.RMSNorm(D), nn.RMSNorm(D), nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.sparse = sparse
        if sparse:
            self.gate = nn.Linear(D, EXPERTS, bias=False)
            self.w1, self.w2 = nn.Parameter(torch.randn(EXPERTS, D, 4 * D) * 0.02), nn.Parameter(torch.randn(EXPERTS, 4 * D, D) * 0.02)
        else:
            self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def experts(self, x):
        flat = x.reshape(-1, D)
        score = self.gate(flat).float().softmax(-1)
        weight, token = score.t().topk(len(flat) * 2 // EXPERTS, -1)
        y = torch.bmm(F.gelu(torch.bmm(flat[token], self.w1.to(flat.dtype))), self.w2.to(flat.dtype))
        y = y * weight[..., None].to(y.dtype)
        return torch.zeros_like(flat).index_add(0, token.flatten(), y.flatten(0, 1).to(flat.dtype)).view_as(x)

    def forward(self, x, cos, sin):
        q, k, v = self.qkv(self.n1(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.n2(x)
        return x + (self.experts(h) if self.sparse else self.mlp(h))


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["m"] = torch.zeros_like(p)
                p.mul_(1 - g["lr"] * g["decay"])
                p.add_((s["m"] * g["betas"][0] + p.grad * (1 - g["betas"][0])).sign_(), alpha=-g["lr"])
                s["m"].lerp_(p.grad, 1 - g["betas"][1])


words, blocks = nn.Embedding(8000, D).cuda(), nn.ModuleList(Block(i % 2 == 1) for i in range(6)).cuda()
head = nn.Linear(D, 8000, bias=False).cuda()
optimizer = Lion([*words.parameters(), *blocks.parameters(), *head.parameters()])
angle = torch.arange(512, device="cuda")[:, None] / 10000 ** (torch.arange(32, device="cuda") / 32)
for step in range(6):
    ids = torch.randint(0, 8000, (10, 513)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        x = words(ids[:, :-1])
        for b in blocks:
            x = b(x, angle.cos(), angle.sin())
        loss = F.cross_entropy(head(x).view(-1, 8000), ids[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
