"""A selective state space (Mamba-like) with the scan by doubling: log steps over the sequence, depthwise convolution, gates, float32, Adam with warm-up."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(911)
D, INNER, STATE, RANK = 256, 512, 8, 16


def scan(a, b):
    """h[t] = a[t] h[t-1] + b[t] by doubling."""
    step, n = 1, a.shape[1]
    while step < n:
        b = torch.cat([b[:, :step], b[:, step:] + a[:, step:] * b[:, :-step]], 1)
        a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
        step *= 2
    return b


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.into, self.conv = nn.LayerNorm(D), nn.Linear(D, 2 * INNER, bias=False), nn.Conv1d(INNER, INNER, 4, groups=INNER, padding=3)
        self.choose, self.dt, self.out = nn.Linear(INNER, RANK + 2 * STATE, bias=False), nn.Linear(RANK, INNER), nn.Linear(INNER, D, bias=False)
        self.a, self.skip = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(INNER, 1)), nn.Parameter(torch.ones(INNER))

    def forward(self, x):
        u, z = self.into(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        r, b, c = self.choose(u).split([RANK, STATE, STATE], -1)
        dt = F.softplus(self.dt(r))
        a = torch.exp(-dt[..., None] * self.a.exp())
        h = scan(a, (dt * u)[..., None] * b[:, :, None])
        y = (h * c[:, :, None]).sum(-1) + u * self.skip
        return x + self.out(y * F.silu(z))


words, blocks, head = nn.Embedding(5000, D).cuda(), nn.ModuleList(Block() for _ in range(4)).cuda(), nn.Linear(D, 5000).cuda()
params = [*words.parameters(), *blocks.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(params, 1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
for step in range(5):
    ids = torch.randint(0, 5000, (4, 257)).cuda()
    x = words(ids[:, :-1])
    for b in blocks:
        x = b(x)
    loss = F.cross_entropy(head(x).view(-1, 5000), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()
    schedule.step()
    print(step, loss.item())
