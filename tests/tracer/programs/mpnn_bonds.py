"""Message passing on molecules by hand: matrices of messages from the kinds of bonds, sums by index_add, a recurrent cell for the atoms, a set-to-set readout, batches of different sizes."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1119)
D = 64


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.atoms, self.inp = nn.Embedding(20, D), nn.Linear(D + 6, D)
        self.bond = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, D * D))
        self.cell, self.read = nn.GRUCell(D, D), nn.LSTMCell(2 * D, D)
        self.head = nn.Sequential(nn.Linear(2 * D, 128), nn.SiLU(), nn.Linear(128, 12))

    def forward(self, kind, features, edges, bonds, graph, count):
        h = F.relu(self.inp(torch.cat([self.atoms(kind), features], 1)))
        matrices = self.bond(bonds).view(-1, D, D)
        for _ in range(4):
            sent = torch.bmm(h[edges[0], None], matrices).squeeze(1)
            degree = torch.zeros(len(h), device=h.device).index_add_(0, edges[1], torch.ones(len(sent), device=h.device))
            got = torch.zeros_like(h).index_add_(0, edges[1], sent) / degree.clamp(min=1)[:, None]
            h = self.cell(F.relu(got), h)
        q = torch.zeros(count, 2 * D, device=h.device)
        state = (torch.zeros(count, D, device=h.device), torch.zeros(count, D, device=h.device))
        for _ in range(3):
            state = self.read(q, state)
            score = (h * state[0][graph]).sum(1)
            most = torch.full((count,), -1e9, device=h.device).scatter_reduce(0, graph, score.detach(), "amax")
            weight = (score - most[graph]).exp()
            weight = weight / torch.zeros(count, device=h.device).index_add(0, graph, weight)[graph]
            q = torch.cat([state[0], torch.zeros(count, D, device=h.device).index_add(0, graph, weight[:, None] * h)], 1)
        return self.head(q)


def batch(count):
    sizes = torch.randint(8, 28, (count,))
    graph = torch.repeat_interleave(torch.arange(count), sizes)
    starts = torch.cumsum(sizes, 0) - sizes
    ends = 2 * sizes + 2
    owner = torch.repeat_interleave(torch.arange(count), ends)
    a = starts[owner] + (torch.rand(len(owner)) * sizes[owner]).long()
    b = starts[owner] + (torch.rand(len(owner)) * sizes[owner]).long()
    edges = torch.cat([torch.stack([a, b]), torch.stack([b, a])], 1)
    n, e = len(graph), edges.shape[1]
    return [v.cuda() for v in (torch.randint(0, 20, (n,)), torch.randn(n, 6), edges, torch.randn(e, 8), graph)]


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
rate = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
for step in range(9):
    count = (96, 160, 128)[step % 3]
    y = torch.randn(count, 12).cuda()
    loss = F.smooth_l1_loss(net(*batch(count), count), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rate.step(loss.item())
    print(step, loss.item())
net.eval()
with torch.no_grad():
    print(net(*batch(240), 240).mean(0)[:3].tolist())
