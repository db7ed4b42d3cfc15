"""Convolutions on batches of 32 graphs, with pooling that keeps the half of the nodes that have the highest scores, and the edges between them: Adagrad, products of float32 in TF32, four parts a step, an evaluation of graphs of other sizes at the end."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1617)
torch.set_float32_matmul_precision("high")
D, GRAPHS = 256, 32


class Conv(nn.Module):
    """The mean of the neighbours, beside the node itself."""

    def __init__(self, i, o):
        super().__init__()
        self.own, self.other, self.norm = nn.Linear(i, o), nn.Linear(i, o, bias=False), nn.BatchNorm1d(o)

    def forward(self, h, source, target):
        degree = torch.zeros(len(h), 1, device=h.device).index_add(0, target, torch.ones(len(target), 1, device=h.device))
        mean = torch.zeros_like(h).index_add(0, target, h[source]) / degree.clamp(min=1)
        return F.relu(self.norm(self.own(h) + self.other(mean)))


class Pool(nn.Module):
    """Of each graph the half with the highest scores; `sizes` are known to the host."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(D, 1)

    def forward(self, h, source, target, sizes):
        score = torch.tanh(self.score(h)).squeeze(1)
        kept = [s.topk((n + 1) // 2).indices + sum(sizes[:i]) for i, (s, n) in enumerate(zip(score.split(sizes), sizes))]
        kept = torch.cat(kept)
        place = torch.full((len(h),), -1, device=h.device, dtype=torch.long)
        place[kept] = torch.arange(len(kept), device=h.device)
        source, target = place[source], place[target]
        both = (source >= 0) & (target >= 0)
        return h[kept] * score[kept, None], source[both], target[both], [(n + 1) // 2 for n in sizes]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(40, D)
        self.convs, self.pools = nn.ModuleList(Conv(D, D) for _ in range(3)), nn.ModuleList(Pool() for _ in range(3))
        self.head = nn.Sequential(nn.Linear(2 * D, D), nn.ReLU(), nn.Dropout(0.3), nn.Linear(D, 6))

    def forward(self, x, source, target, sizes):
        h, total = F.relu(self.first(x)), 0
        for conv, pool in zip(self.convs, self.pools):
            h, source, target, sizes = pool(conv(h, source, target), source, target, sizes)
            parts = h.split(sizes)
            total = total + torch.stack([torch.cat([p.amax(0), p.mean(0)]) for p in parts])
        return self.head(total)


def graphs(number, smallest=300, largest=900):
    """Graphs with 10 edges a node."""
    sizes = [smallest + (113 * (GRAPHS * number + k)) % (largest - smallest) for k in range(GRAPHS)]
    first = [sum(sizes[:k]) for k in range(GRAPHS)]
    ends = torch.cat([torch.randint(0, n, (2, 10 * n)) + f for n, f in zip(sizes, first)], 1).cuda()
    return torch.randn(sum(sizes), 40).cuda(), ends[0], ends[1], sizes


model = Net().cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=5e-3)
model.train()
for step in range(4):
    total = 0.0
    for part in range(4):
        loss = F.cross_entropy(model(*graphs(4 * step + part)), torch.randint(0, 6, (GRAPHS,)).cuda()) / 4
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print(step, total)
model.eval()
with torch.no_grad():
    for smallest, largest in ((100, 400), (800, 1600), (1000, 1400)):
        print(smallest, model(*graphs(40, smallest, largest)).argmax(1).tolist())
