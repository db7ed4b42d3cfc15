"""A Mamba-like network that reads the patches of pictures in both directions, its scan written as sums in chunks: NAdam, bfloat16 weights, batches of 16, checkpointing, an evaluation with a larger batch at the end."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1417)
D, INNER, STATE, RANK, CHUNK = 192, 384, 8, 12, 28


def scan(x, dt, a, b, c):
    """h' = exp(dt a) h + dt b x, y = c h, chunk after chunk; inside a chunk by sums of logarithms."""
    n, length, inner = x.shape
    state, out = x.new_zeros(n, inner, STATE, dtype=torch.float32), []
    for i in range(0, length, CHUNK):
        xs, ds, bs, cs = (z[:, i:i + CHUNK].float() for z in (x, dt, b, c))
        decay = torch.cumsum(ds[..., None] * a, 1)
        grown = torch.cumsum((ds * xs)[..., None] * bs[:, :, None] * torch.exp(-decay.clamp(min=-20)), 1)
        h = torch.exp(decay) * (grown + state[:, None])
        out.append(torch.einsum("nlis,nls->nli", h, cs))
        state = h[:, -1]
    return torch.cat(out, 1).to(x.dtype)


class Direction(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(INNER, INNER, 4, padding=3, groups=INNER)
        self.small, self.dt = nn.Linear(INNER, RANK + 2 * STATE, bias=False), nn.Linear(RANK, INNER)
        self.a, self.skip = nn.Parameter(torch.log(torch.arange(1, STATE + 1).float()).repeat(INNER, 1) * 0.3), nn.Parameter(torch.ones(INNER))

    def forward(self, x):
        x = F.silu(self.conv(x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        dt, b, c = self.small(x).split((RANK, STATE, STATE), -1)
        dt = F.softplus(self.dt(dt) - 4)
        return scan(x, dt, -torch.exp(self.a.float()), b, c) + x * self.skip


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inside, self.outside = nn.LayerNorm(D), nn.Linear(D, 2 * INNER, bias=False), nn.Linear(INNER, D, bias=False)
        self.there, self.back = Direction(), Direction()

    def forward(self, x):
        y, gate = self.inside(self.norm(x)).chunk(2, -1)
        y = self.there(y) + self.back(y.flip(1)).flip(1)
        return x + self.outside(y * F.silu(gate))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, D, 16, 16), nn.Parameter(torch.randn(1, 196, D) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, 100)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        return self.head(self.norm(x).mean(1))


model = Net().to("cuda", torch.bfloat16)
optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
model.train()
for step in range(5):
    x, y = torch.randn(16, 3, 224, 224).to("cuda", torch.bfloat16), torch.randint(0, 100, (16,)).cuda()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print(model(torch.randn(64, 3, 224, 224).to("cuda", torch.bfloat16)).argmax(1).float().mean().item())
