"""A recommender: sparse embedding bags of varying lengths, pairwise interactions, two optimizers."""
import random

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, rows, width=64):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(n, width, mode="sum", sparse=True) for n in rows])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width))
        count = len(rows) + 1
        self.register_buffer("pairs", torch.tril_indices(count, count, -1))
        self.top = nn.Sequential(nn.Linear(width + count * (count - 1) // 2, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, dense, bags):
        x = self.bottom(dense)
        z = torch.stack([x] + [t(i, o) for t, (i, o) in zip(self.tables, bags)], 1)
        inter = torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, inter], 1)).squeeze(1)


def bags(rows, batch):
    out = []
    for n in rows:
        lengths = torch.randint(0, 2 * random.randrange(2, 20), (batch,))
        offsets = torch.cumsum(lengths, 0) - lengths
        out.append((torch.randint(0, n, (int(lengths.sum()),)).cuda(), offsets.cuda()))
    return out


random.seed(14)
torch.manual_seed(14)
rows = [2_000_000, 1_500_000, 800_000, 800_000, 300_000, 100_000, 40_000, 10_000, 5_000, 1_000, 300, 60]
with torch.device("cuda"):
    model = Recommender(rows)
sparse = torch.optim.SparseAdam(list(model.tables.parameters()), lr=1e-3)
dense = torch.optim.Adam(list(model.bottom.parameters()) + list(model.top.parameters()), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
for step in range(10):
    batch = random.choice([4096, 8192, 16384])
    x, label = torch.randn(batch, 13).cuda(), torch.randint(0, 2, (batch,)).float().cuda()
    loss = criterion(model(x, bags(rows, batch)), label)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(step, batch, loss.item())
