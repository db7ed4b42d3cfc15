"""A language model with two layers of Mamba between layers of attention with few keys, the scan written with sums in chunks: NAdam, bfloat16 autocast, batches of 32, gradients clipped by value."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1518)
D, INNER, STATE, RANK, CHUNK, HEADS, KEYS, V, T = 256, 512, 8, 16, 32, 8, 2, 8000, 256


def scan(x, dt, a, b, c):
    """h' = exp(dt a) h + dt b x, y = c h: within a chunk by a product with decays, from chunk to chunk by a loop."""
    n, length, inner = x.shape
    x, dt, b, c = (z.unflatten(1, (length // CHUNK, CHUNK)) for z in (x, dt, b, c))
    state, out = x.new_zeros(n, inner, STATE), []
    for i in range(x.shape[1]):
        total = torch.cumsum(dt[:, i], 1)[..., None] * a
        grown = torch.cumsum((dt[:, i] * x[:, i])[..., None] * b[:, i, :, None] * torch.exp((-total).clamp(max=30)), 1)
        h = torch.exp(total) * (grown + state[:, None])
        out.append((h * c[:, i, :, None]).sum(-1))
        state = h[:, -1]
    return torch.cat(out, 1)


class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inside, self.outside = nn.RMSNorm(D), nn.Linear(D, 2 * INNER, bias=False), nn.Linear(INNER, D, bias=False)
        self.conv = nn.Conv1d(INNER, INNER, 4, groups=INNER, padding=3)
        self.small, self.dt = nn.Linear(INNER, RANK + 2 * STATE, bias=False), nn.Linear(RANK, INNER)
        self.a, self.skip = nn.Parameter(torch.log(torch.arange(1, STATE + 1).float()).repeat(INNER, 1) * 0.2), nn.Parameter(torch.ones(INNER))

    def forward(self, x):
        y, gate = self.inside(self.norm(x)).chunk(2, -1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        dt, b, c = self.small(y).split((RANK, STATE, STATE), -1)
        dt = F.softplus(self.dt(dt).float() - 4)
        y = scan(y.float(), dt, -torch.exp(self.a), b.float(), c.float()) + y * self.skip
        return x + self.outside(y * F.silu(gate))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.kv, self.out = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * KEYS * D // HEADS, bias=False), nn.Linear(D, D, bias=False)
        self.gate, self.up, self.down = nn.Linear(D, 704, bias=False), nn.Linear(D, 704, bias=False), nn.Linear(704, D, bias=False)

    def forward(self, x):
        y = self.n1(x)
        q, (k, v) = self.q(y).unflatten(-1, (HEADS, -1)).transpose(1, 2), self.kv(y).unflatten(-1, (2, KEYS, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Hybrid(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(V, D)
        self.layers = nn.Sequential(*(Attention() if i % 3 == 2 else Mamba() for i in range(6)))
        self.norm, self.head = nn.RMSNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.words(ids))))


model = Hybrid().cuda()
optimizer = torch.optim.NAdam(model.parameters(), 1e-3, decoupled_weight_decay=True, weight_decay=0.01)
model.train()
for step in range(4):
    ids = torch.randint(0, V, (32, T + 1)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(step, loss.item())
