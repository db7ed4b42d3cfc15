"""Link prediction: a graph convolution with a sparse matrix, negative samples, dropout of edges, and pruned weights."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(81)
NODES, EDGES = 40000, 400000
edges = torch.randint(0, NODES, (2, EDGES))
features = torch.randn(NODES, 256, device="cuda")


def adjacency(pairs):
    both = torch.cat([pairs, pairs.flip(0), torch.arange(NODES).expand(2, -1)], dim=1)
    matrix = torch.sparse_coo_tensor(both, torch.ones(both.shape[1]), (NODES, NODES)).coalesce()
    degree = torch.sparse.sum(matrix, 1).to_dense().rsqrt()
    row, column = matrix.indices()
    return torch.sparse_coo_tensor(matrix.indices(), matrix.values() * degree[row] * degree[column], (NODES, NODES)).cuda()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 128)
        self.score = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, matrix, x):
        h = torch.sparse.mm(matrix, self.first(x)).relu()
        return torch.sparse.mm(matrix, self.second(F.dropout(h, 0.5, self.training)))

    def pairs(self, h, index):
        return self.score(h[index[0]] * h[index[1]]).squeeze(-1)


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(6):
    keep = torch.rand(EDGES) < 0.8
    matrix = adjacency(edges[:, keep]).coalesce()
    h = net(matrix, features)
    positive = edges[:, ~keep].cuda()
    negative = torch.randint(0, NODES, tuple(positive.shape), device="cuda")
    scores = torch.cat([net.pairs(h, positive), net.pairs(h, negative)])
    label = torch.cat([torch.ones(positive.shape[1], device="cuda"), torch.zeros(positive.shape[1], device="cuda")])
    loss = F.binary_cross_entropy_with_logits(scores, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, positive.shape[1], loss.item())
net.eval()
with torch.no_grad():
    h = net(adjacency(edges), features)
    print(torch.stack([net.pairs(h, part).sigmoid().mean() for part in edges.cuda().split(100000, dim=1)]).mean().item())
