"""Layers of transformers on batches of 16 graphs: attention along edges, with features of edges and places by random walks. SGD with Nesterov momentum, bfloat16 autocast, four parts a step, gradients clipped by their norm, averaged weights are evaluated."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1519)
D, HEADS, WALK = 192, 8, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.e, self.out = (nn.Linear(D, D) for _ in range(5))
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2 * D, D))

    def forward(self, h, e, source, target):
        q, k, v, w = self.q(h)[target], self.k(h)[source], self.v(h)[source], self.e(e)
        score = (q * k * w).unflatten(1, (HEADS, -1)).sum(-1).float() * (D // HEADS) ** -0.5
        most = torch.full((len(h), HEADS), -1e9, device=h.device).scatter_reduce(0, target[:, None].expand(-1, HEADS), score.detach(), "amax")
        weight = torch.exp(score - most[target])
        total = torch.zeros(len(h), HEADS, device=h.device).index_add(0, target, weight)
        weight = (weight / (total[target] + 1e-9)).to(v.dtype)
        message = (v.unflatten(1, (HEADS, -1)) * weight[..., None]).flatten(1)
        h = self.n1(h + self.out(torch.zeros(len(h), D, device=h.device, dtype=v.dtype).index_add(0, target, message)))
        return self.n2(h + self.mlp(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.node, self.edge, self.place = nn.Embedding(30, D), nn.Embedding(6, D), nn.Linear(WALK, D)
        self.layers = nn.ModuleList(Layer() for _ in range(6))
        self.head = nn.Sequential(nn.Linear(2 * D, D), nn.ReLU(), nn.Linear(D, 10))

    def forward(self, kinds, bonds, walks, source, target, graph, graphs):
        h, e = self.node(kinds) + self.place(walks), self.edge(bonds)
        for layer in self.layers:
            h = layer(h, e, source, target)
        most = h.new_full((graphs, D), -1e4).index_reduce(0, graph, h, "amax")
        count = torch.bincount(graph, minlength=graphs)[:, None]
        mean = h.new_zeros(graphs, D).index_add(0, graph, h) / count
        return self.head(torch.cat([mean, most], 1))


def graphs(number, count=16):
    """Graphs of 200 to 600 nodes with 6 edges a node."""
    sizes = [200 + (91 * (count * number + k)) % 400 for k in range(count)]
    first = [sum(sizes[:k]) for k in range(count)]
    ends = torch.cat([torch.randint(0, n, (2, 6 * n)) + f for n, f in zip(sizes, first)], 1)
    graph = torch.repeat_interleave(torch.arange(count), torch.tensor(sizes))
    n, m = sum(sizes), ends.shape[1]
    return [z.cuda() for z in (torch.randint(0, 30, (n,)), torch.randint(0, 6, (m,)), torch.rand(n, WALK), ends[0], ends[1], graph)], torch.randint(0, 10, (count,)).cuda()


model = Net().cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
model.train()
for step in range(5):
    total = 0.0
    for part in range(4):
        batch, y = graphs(4 * step + part)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(*batch, 16), y) / 4
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(step, total, norm.item())
average.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for number in (40, 41, 42):
        batch, y = graphs(number)
        print("right", (average(*batch, 16).argmax(1) == y).sum().item())
