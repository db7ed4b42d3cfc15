"""Ranking advertisements with crossed features (DCN-v2): bags of different lengths, sparse gradients with their own optimizer, low-rank crosses that are mixed, a calibration at the end."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1120)
SIZES, DIM, DENSE = [200000, 80000, 40000, 9000, 900, 90, 12], 48, 13


class Cross(nn.Module):
    def __init__(self, d, rank=96, experts=3):
        super().__init__()
        self.u, self.v = nn.Parameter(torch.randn(experts, d, rank) * 0.02), nn.Parameter(torch.randn(experts, d, rank) * 0.02)
        self.c, self.gate, self.bias = nn.Parameter(torch.randn(experts, rank, rank) * 0.1), nn.Linear(d, experts), nn.Parameter(torch.zeros(d))

    def forward(self, first, x):
        low = torch.tanh(torch.einsum("bd,edr->ber", x, self.v))
        low = torch.tanh(torch.einsum("ber,ers->bes", low, self.c))
        high = torch.einsum("bes,eds->bed", low, self.u) + self.bias
        weight = self.gate(x).softmax(-1)
        return x + (weight[..., None] * first[:, None] * high).sum(1)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, DIM, mode="mean" if n > 1000 else "sum", sparse=True) for n in SIZES)
        d = DIM * len(SIZES) + 64
        self.dense = nn.Sequential(nn.Linear(DENSE, 128), nn.ReLU(), nn.Linear(128, 64))
        self.crosses = nn.ModuleList(Cross(d) for _ in range(3))
        self.deep = nn.Sequential(nn.Linear(d, 768), nn.ReLU(), nn.BatchNorm1d(768), nn.Linear(768, 256), nn.ReLU())
        self.head = nn.Linear(d + 256, 1)

    def forward(self, dense, bags):
        parts = [table(ids, offsets) for table, (ids, offsets) in zip(self.tables, bags)]
        first = x = torch.cat([self.dense(dense), *parts], 1)
        for cross in self.crosses:
            x = cross(first, x)
        return self.head(torch.cat([x, self.deep(first)], 1)).squeeze(1)


def batch(n):
    bags = []
    for i, size in enumerate(SIZES):
        lengths = torch.randint(1, 6, (n,)) if i < 3 else torch.ones(n, dtype=torch.long)
        offsets = torch.cumsum(lengths, 0) - lengths
        bags.append((torch.randint(0, size, (int(lengths.sum()),)).cuda(), offsets.cuda()))
    return torch.rand(n, DENSE).cuda(), bags, (torch.rand(n) < 0.2).float().cuda()


model = Ranker().cuda()
sparse = torch.optim.SparseAdam(list(model.tables.parameters()), 1e-3)
dense = torch.optim.Adagrad([p for n, p in model.named_parameters() if not n.startswith("tables")], 1e-2)
for step in range(9):
    x, bags, y = batch(16384 if step % 3 else 24576)
    loss = F.binary_cross_entropy_with_logits(model(x, bags), y)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    p = torch.cat([torch.sigmoid(model(*batch(32768)[:2])) for _ in range(3)])
    edges = torch.quantile(p[:60000], torch.linspace(0, 1, 11, device="cuda"))
    print([((p >= a) & (p < b)).sum().item() for a, b in zip(edges[:-1], edges[1:])][:3])
