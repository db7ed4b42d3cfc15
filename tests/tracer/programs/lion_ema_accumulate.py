"""A small GPT with an optimizer of its own (Lion), accumulated gradients, clipping, a schedule, a moving average."""
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(m * b1 + p.grad * (1 - b1)), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).unbind(2)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


random.seed(30)
torch.manual_seed(30)
model = nn.Sequential(nn.Embedding(16384, 640), *[Layer(640, 10) for _ in range(8)], nn.RMSNorm(640),
                      nn.Linear(640, 16384, bias=False)).cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = Lion(model.parameters(), lr=1e-4, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-4, total_steps=20)
for step in range(8):
    for micro in range(3):
        ids = torch.randint(0, 16384, (8, random.choice([384, 512, 640])), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten()) / 3
        loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.01)
    if step % 4 == 3:
        with torch.no_grad():
            print(step, norm.item(), average(torch.randint(0, 16384, (4, 256), device="cuda")).float().std().item())
