"""A graph of events in time: memories of nodes by a GRU cell, times encoded by cosines, the last neighbours attended to, messages aggregated by the latest, links predicted against random ones, average precision."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(411)
NODES, WIDTH, NEAR = 50_000, 172, 20


class Temporal(nn.Module):
    def __init__(self, edge=64, time=100):
        super().__init__()
        self.register_buffer("memory", torch.zeros(NODES, WIDTH))
        self.register_buffer("last", torch.zeros(NODES))
        self.register_buffer("near", torch.randint(0, NODES, (NODES, NEAR)))
        self.register_buffer("when", torch.zeros(NODES, NEAR))
        self.rate, self.cell = nn.Linear(1, time), nn.GRUCell(2 * WIDTH + edge + time, WIDTH)
        self.query, self.key, self.value = nn.Linear(WIDTH + time, 2 * WIDTH), nn.Linear(WIDTH + time, 2 * WIDTH), nn.Linear(WIDTH + time, 2 * WIDTH)
        self.out, self.link = nn.Sequential(nn.Linear(3 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)), nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def clock(self, dt):
        return torch.cos(self.rate(dt[..., None]))

    def embed(self, nodes, memory, t):
        near = self.near[nodes]
        q = self.query(torch.cat([memory[nodes], self.clock(torch.zeros_like(t))], -1)).view(len(nodes), 1, 2, WIDTH).transpose(1, 2)
        around = torch.cat([memory[near], self.clock(t[:, None] - self.when[nodes])], -1)
        k, v = (f(around).view(len(nodes), NEAR, 2, WIDTH).transpose(1, 2) for f in (self.key, self.value))
        mask = (self.when[nodes] <= t[:, None])[:, None, None]
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(1)
        return self.out(torch.cat([seen, memory[nodes]], -1))

    def update(self, source, target, t, edge):
        both, other = torch.cat([source, target]), torch.cat([target, source])
        unique, inverse = torch.unique(both, return_inverse=True)
        position = torch.arange(len(both), device=both.device)
        newest = torch.full((len(unique),), -1, device=both.device).scatter_reduce(0, inverse, position, "amax")
        tt = t.repeat(2)[newest]
        message = torch.cat([self.memory[both[newest]], self.memory[other[newest]], edge.repeat(2, 1)[newest], self.clock(tt - self.last[unique])], -1)
        return unique, self.cell(message, self.memory[unique]), tt


model = Temporal().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4, foreach=False)
now = 0.0
for step in range(6):
    count = 3000 + 200 * step
    source, target, wrong = (torch.randint(0, NODES, (count,), device="cuda") for _ in range(3))
    t, edge = now + torch.rand(count, device="cuda").sort().values, torch.randn(count, 64, device="cuda")
    unique, fresh, tt = model.update(source, target, t, edge)
    memory = model.memory.index_copy(0, unique, fresh)
    a, b, c = model.embed(torch.cat([source, target, wrong]), memory, t.repeat(3)).chunk(3)
    good, bad = model.link(torch.cat([a, b], -1)), model.link(torch.cat([a, c], -1))
    loss = F.binary_cross_entropy_with_logits(good, torch.ones_like(good)) + F.binary_cross_entropy_with_logits(bad, torch.zeros_like(bad))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.memory[unique], model.last[unique] = fresh.detach(), tt
        slot = torch.randint(0, NEAR, (count,), device="cuda")
        model.near[source, slot], model.when[source, slot] = target, t
        model.near[target, slot], model.when[target, slot] = source, t
        scores, order = torch.cat([good, bad]).flatten().sort(descending=True)
        hit = (order < count).float()
        precision = (hit.cumsum(0) / torch.arange(1, len(hit) + 1, device="cuda") * hit).sum() / count
    now += 1
    print(step, loss.item(), precision.item())
