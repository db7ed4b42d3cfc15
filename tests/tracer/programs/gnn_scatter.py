"""A graph network without a library: messages along edges, index_add, scatter_reduce, a softmax over neighbours."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 16, width), nn.SiLU(), nn.Linear(width, width))
        self.score = nn.Linear(width, 4)
        self.update = nn.Sequential(nn.Linear(3 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x, edges, kinds):
        source, target = edges
        m = self.message(torch.cat([x[source], x.index_select(0, target), kinds], dim=1))
        s = self.score(m)
        most = torch.full((len(x), 4), float("-inf"), device=x.device).scatter_reduce(
            0, target[:, None].expand(-1, 4), s, reduce="amax")
        e = (s - most[target]).exp()
        total = torch.zeros(len(x), 4, device=x.device).index_add_(0, target, e)
        weight = (e / total[target]).repeat_interleave(m.shape[1] // 4, dim=1)
        mean = torch.zeros_like(x).index_add(0, target, weight * m)
        high = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand_as(m), m, "amax", include_self=False)
        return x + self.norm(self.update(torch.cat([x, mean, high], dim=1)))


class Net(nn.Module):
    def __init__(self, width=128, layers=5):
        super().__init__()
        self.atoms, self.kinds = nn.Embedding(100, width), nn.Embedding(5, 16)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, atoms, edges, kinds, graph, graphs):
        x, kinds = self.atoms(atoms), self.kinds(kinds)
        for layer in self.layers:
            x = layer(x, edges, kinds)
        sums = torch.zeros(graphs, x.shape[1], device=x.device).scatter_add_(0, graph[:, None].expand_as(x), x)
        return self.head(sums / torch.bincount(graph, minlength=graphs)[:, None]).squeeze(1)


def batch(graphs, seed):
    g = torch.Generator().manual_seed(seed)
    sizes = torch.randint(10, 60, (graphs,), generator=g)
    graph = torch.repeat_interleave(torch.arange(graphs), sizes)
    start = torch.cumsum(sizes, 0) - sizes
    source = torch.arange(len(graph)).repeat(12)
    target = start[graph].repeat(12) + (torch.rand(len(source), generator=g) * sizes[graph].repeat(12)).long()
    return (torch.randint(0, 100, (len(graph),), generator=g), torch.stack([source, target]),
            torch.randint(0, 5, (len(source),), generator=g), graph)


torch.manual_seed(25)
net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
for step in range(10):
    graphs = 256 + 64 * (step % 3)
    inputs = [t.cuda() for t in batch(graphs, step)]
    loss = F.l1_loss(net(*inputs, graphs), torch.randn(graphs, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, len(inputs[0]), loss.item())
