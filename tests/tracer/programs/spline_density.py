"""Densities of tables by splines: rational quadratic couplings with searched bins and gathered knots, masked autoregressive layers between them, batch shuffled on the card, then sampling by inversion."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(410)
BINS, BOUND = 12, 4.0


def spline(x, w, h, d, inverse=False):
    w = 2 * BOUND * F.pad((1e-3 + (1 - 1e-3 * BINS) * F.softmax(w, -1)).cumsum(-1), (1, 0)) - BOUND
    h = 2 * BOUND * F.pad((1e-3 + (1 - 1e-3 * BINS) * F.softmax(h, -1)).cumsum(-1), (1, 0)) - BOUND
    d = F.pad(1e-3 + F.softplus(d), (1, 1), value=1.0)
    inside = (x > -BOUND) & (x < BOUND)
    z = x.clamp(-BOUND + 1e-4, BOUND - 1e-4)
    knots = h if inverse else w
    index = (torch.searchsorted(knots.contiguous(), z[..., None].contiguous(), right=True) - 1).clamp(0, BINS - 1)
    x0, x1, y0, y1, d0, d1 = (a.gather(-1, index + i).squeeze(-1) for a, i in ((w, 0), (w, 1), (h, 0), (h, 1), (d, 0), (d, 1)))
    slope = (y1 - y0) / (x1 - x0)
    if inverse:
        a = (z - y0) * (d0 + d1 - 2 * slope) + (y1 - y0) * (slope - d0)
        b = (y1 - y0) * d0 - (z - y0) * (d0 + d1 - 2 * slope)
        c = -slope * (z - y0)
        t = 2 * c / (-b - (b * b - 4 * a * c).clamp(min=0).sqrt())
        return torch.where(inside, x0 + t * (x1 - x0), x), None
    t = (z - x0) / (x1 - x0)
    bottom = slope + (d0 + d1 - 2 * slope) * t * (1 - t)
    y = y0 + (y1 - y0) * (slope * t * t + d0 * t * (1 - t)) / bottom
    log = torch.log(slope * slope * (d1 * t * t + 2 * slope * t * (1 - t) + d0 * (1 - t) ** 2)) - 2 * torch.log(bottom)
    return torch.where(inside, y, x), torch.where(inside, log, torch.zeros_like(log))


class Coupling(nn.Module):
    def __init__(self, width, flip, hidden=384):
        super().__init__()
        self.flip, self.half = flip, width // 2
        self.net = nn.Sequential(nn.Linear(self.half, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ELU(), nn.Dropout(0.1), nn.Linear(hidden, self.half * (3 * BINS - 1)))

    def forward(self, x, inverse=False):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        w, h, d = self.net(a).view(len(x), self.half, -1).split([BINS, BINS, BINS - 1], -1)
        b, log = spline(b, w, h, d, inverse)
        return torch.cat([b, a] if self.flip else [a, b], -1), log if log is None else log.sum(-1)


class Flow(nn.Module):
    def __init__(self, width=32, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(width, i % 2 == 1) for i in range(layers))
        self.mean, self.log = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        total = 0
        for layer in self.layers:
            x, log = layer(x)
            total = total + log
        base = torch.distributions.Independent(torch.distributions.Normal(self.mean, self.log.exp()), 1)
        return base.log_prob(x) + total


data = torch.randn(60_000, 32, device="cuda") * 1.5
model = Flow().cuda()
optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
order = torch.randperm(len(data), device="cuda")
for step in range(6):
    x = data[order[step * 8192:(step + 1) * 8192]]
    loss = -model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    x = torch.randn(20_000, 32, device="cuda")
    for layer in reversed(model.layers):
        x = layer(x, inverse=True)[0]
    print(x.std().item(), torch.cat([model(part) for part in data.split(16384)]).mean().item())
