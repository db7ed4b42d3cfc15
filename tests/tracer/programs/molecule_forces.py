"""A potential for molecules: pairs below a cutoff, continuous filters, energies by scatter, forces by a gradient that is trained."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(104)
torch.manual_seed(104)


class Interaction(nn.Module):
    def __init__(self, width, radial):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(radial, width), nn.SiLU(), nn.Linear(width, width))
        self.inside, self.outside = nn.Linear(width, width, bias=False), nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, i, j, basis, cut):
        messages = self.inside(h)[j] * self.filter(basis) * cut.unsqueeze(-1)
        return h + self.outside(torch.zeros_like(h).index_add(0, i, messages))


class Potential(nn.Module):
    def __init__(self, width=192, radial=64, layers=4, cutoff=5.0):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.layers = nn.ModuleList(Interaction(width, radial) for _ in range(layers))
        self.out = nn.Sequential(nn.Linear(width, width // 2), nn.SiLU(), nn.Linear(width // 2, 1))
        self.register_buffer("centers", torch.linspace(0, cutoff, radial))
        self.cutoff = cutoff

    def forward(self, kinds, where, i, j, owner, molecules):
        d = (where[i] - where[j]).norm(dim=-1)
        basis = torch.exp(-10.0 * (d.unsqueeze(-1) - self.centers) ** 2)
        cut = 0.5 * (torch.cos(d * 3.14159 / self.cutoff) + 1) * (d < self.cutoff)
        h = self.embed(kinds)
        for layer in self.layers:
            h = layer(h, i, j, basis, cut)
        return torch.zeros(molecules, device=h.device).index_add(0, owner, self.out(h).squeeze(-1))


def batch(molecules):
    sizes = [random.randint(12, 40) for _ in range(molecules)]
    where = torch.cat([torch.rand(n, 3) * (n ** (1 / 3)) * 2.2 for n in sizes])
    kinds = torch.randint(1, 10, (sum(sizes),))
    owner = torch.repeat_interleave(torch.arange(molecules), torch.tensor(sizes))
    first, pairs = 0, []
    for n in sizes:
        d = torch.cdist(where[first : first + n], where[first : first + n])
        pairs.append(((d < 5.0) & ~torch.eye(n, dtype=torch.bool)).nonzero() + first)
        first += n
    i, j = torch.cat(pairs).t().contiguous()
    energy, forces = torch.randn(molecules), torch.randn(sum(sizes), 3)
    return [t.cuda() for t in (kinds, where, i, j, owner, energy, forces)]


model = Potential().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, amsgrad=True)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
for step in range(10):
    kinds, where, i, j, owner, energy, forces = batch(48)
    where.requires_grad_(True)
    predicted = model(kinds, where, i, j, owner, 48)
    pull = -torch.autograd.grad(predicted.sum(), where, create_graph=True)[0]
    loss = F.mse_loss(predicted, energy) + 100 * F.mse_loss(pull, forces)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(loss.item())
    print(step, i.numel(), loss.item())
