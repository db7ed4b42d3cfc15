"""A network on batches of 12 graphs whose edges carry messages with gates and are renewed in each layer: fused AdamW, float16 with a scaler, gradients clipped by value, an evaluation in between."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1420)
D = 192


class GatedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.u, self.v = (nn.Linear(D, D) for _ in range(5))
        self.nodes, self.edges = nn.BatchNorm1d(D), nn.BatchNorm1d(D)

    def forward(self, h, e, source, target):
        new = self.a(h)[source] + self.b(h)[target] + self.c(e)
        gate = torch.sigmoid(new)
        total = torch.zeros_like(h, dtype=gate.dtype).index_add(0, target, gate)
        message = torch.zeros_like(h, dtype=gate.dtype).index_add(0, target, gate * self.v(h)[source])
        h = h + F.relu(self.nodes(self.u(h) + message / (total + 1e-4)))
        return h, e + F.relu(self.edges(new))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.node, self.edge = nn.Embedding(28, D), nn.Embedding(5, D)
        self.layers = nn.ModuleList(GatedLayer() for _ in range(6))
        self.head = nn.Sequential(nn.Linear(D, D), nn.ReLU(), nn.Linear(D, 1))

    def forward(self, kinds, bonds, source, target, graph, graphs):
        h, e = self.node(kinds), self.edge(bonds)
        for layer in self.layers:
            h, e = layer(h, e, source, target)
        count = torch.bincount(graph, minlength=graphs)
        mean = torch.zeros(graphs, D, device=h.device, dtype=h.dtype).index_add(0, graph, h) / count[:, None]
        return self.head(mean).squeeze(1)


def graphs(step, count=12):
    """Graphs of 400 to 900 nodes, with 8 edges a node."""
    sizes = [400 + (137 * (count * step + k)) % 500 for k in range(count)]
    first = [sum(sizes[:k]) for k in range(count)]
    ends = torch.cat([torch.randint(0, n, (2, 8 * n)) + f for n, f in zip(sizes, first)], 1)
    graph = torch.repeat_interleave(torch.arange(count), torch.tensor(sizes))
    n, m = sum(sizes), ends.shape[1]
    return [z.cuda() for z in (torch.randint(0, 28, (n,)), torch.randint(0, 5, (m,)), ends[0], ends[1], graph)], torch.randn(count).cuda()


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=1e-2, fused=True)
scaler = torch.amp.GradScaler("cuda")
for step in range(6):
    model.train()
    batch, y = graphs(step)
    with torch.autocast("cuda", torch.float16):
        loss = F.l1_loss(model(*batch, 12).float(), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
    if step in (2, 4):
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.float16):
            batch, y = graphs(step + 20)
            print("away", (model(*batch, 12).float() - y).abs().mean().item())
