"""Clouds of points: sizes come from values (unique cells, masks, nonzero), pooling by scatter, sparse products."""
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(6, 128), nn.ReLU(), nn.Linear(128, 128))
        self.cell = nn.Sequential(nn.Linear(128, 512), nn.LayerNorm(512), nn.ReLU(), nn.Linear(512, 128))
        self.head = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 20))

    def forward(self, points, color):
        keep = (points.norm(dim=1) < 2.0).nonzero().squeeze(1)
        points, color = points[keep], color[keep]
        grid = torch.floor(points / 0.05).long() + 64
        key = (grid[:, 0] * 128 + grid[:, 1]) * 128 + grid[:, 2]
        cells, inverse, counts = torch.unique(key, return_inverse=True, return_counts=True)
        f = self.point(torch.cat([points, color], 1))
        pooled = f.new_zeros(len(cells), 128).scatter_reduce(0, inverse[:, None].expand(-1, 128), f, "amax",
                                                             include_self=False)
        h = self.cell(pooled)
        near = torch.sparse_coo_tensor(torch.stack([inverse, torch.arange(len(inverse), device=inverse.device)]),
                                       torch.ones(len(inverse), device=inverse.device), (len(cells), len(inverse)))
        h = h + torch.sparse.mm(near, f) / counts[:, None]
        dense = h[inverse]
        big = counts[inverse] > 1
        return self.head(torch.cat([f, dense], 1)[big]), keep[big]


random.seed(20)
torch.manual_seed(20)
net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(12):
    n = random.randrange(150_000, 500_000)
    points, color = torch.randn(n, 3, device="cuda"), torch.rand(n, 3, device="cuda")
    label = torch.randint(0, 20, (n,), device="cuda")
    scores, kept = net(points, color)
    order = torch.argsort(scores.detach().max(1).values, descending=True)[: len(scores) // 2]
    loss = nn.functional.cross_entropy(scores[order], label[kept][order])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, n, len(scores), loss.item())
