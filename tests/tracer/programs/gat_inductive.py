"""torch_geometric's GATv2 on a large graph in parts: neighbours sampled on the host, residual layers, many labels a node, evaluation on the whole graph layer by layer."""
import random

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATv2Conv

random.seed(815)
torch.manual_seed(815)
NODES, FEATURES = 30000, 64
features = torch.randn(NODES, FEATURES)
labels = (torch.rand(NODES, 20) < 0.2).float()
edges = torch.randint(0, NODES, (2, 300000))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = GATv2Conv(FEATURES, 64, heads=4), GATv2Conv(256, 64, heads=4), GATv2Conv(256, 20, heads=2, concat=False)
        self.l1, self.l2, self.l3 = torch.nn.Linear(FEATURES, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 20)

    def forward(self, x, e):
        x = F.elu(self.c1(x, e) + self.l1(x))
        x = F.dropout(F.elu(self.c2(x, e) + self.l2(x)), 0.2, self.training)
        return self.c3(x, e) + self.l3(x)


def part(count):
    chosen = torch.randperm(NODES)[:count]
    place = torch.full((NODES,), -1)
    place[chosen] = torch.arange(count)
    inside = (place[edges[0]] >= 0) & (place[edges[1]] >= 0)
    return chosen, place[edges[:, inside]]


model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(8):
    nodes, e = part(random.randrange(12000, 20000))
    out = model(features[nodes].cuda(), e.cuda())
    loss = F.binary_cross_entropy_with_logits(out, labels[nodes].cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, e.shape[1], loss.item())
model.eval()
with torch.no_grad():
    out = model(features.cuda(), edges.cuda())
    print(((out > 0).float().cpu() == labels).float().mean().item())
