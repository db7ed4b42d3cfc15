"""Relations between entities with torch_geometric's RGCN in bases, a DistMult decoder over corrupted triples, dropped edges, all entities ranked in pieces."""
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import RGCNConv

torch.manual_seed(1016)
ENTITIES, RELATIONS, EDGES = 12000, 24, 90000


class Net(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.table = nn.Parameter(torch.randn(ENTITIES, width) * 0.1)
        self.a, self.b = (RGCNConv(width, width, 2 * RELATIONS, num_bases=8) for _ in "ab")
        self.relations = nn.Parameter(torch.randn(RELATIONS, width) * 0.1)

    def forward(self, index, kind):
        x = F.relu(self.a(self.table, index, kind))
        return self.b(F.dropout(x, 0.2, self.training), index, kind)

    def score(self, x, head, kind, tail):
        return (x[head] * self.relations[kind] * x[tail]).sum(-1)


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
index, kind = torch.randint(0, ENTITIES, (2, EDGES)).cuda(), torch.randint(0, RELATIONS, (EDGES,)).cuda()
for step in range(6):
    chosen = torch.randperm(EDGES, device="cuda")[: EDGES * (7 if step % 2 else 5) // 10]
    some, of = index[:, chosen], kind[chosen]
    x = net(torch.cat([some, some.flip(0)], 1), torch.cat([of, of + RELATIONS]))
    batch = torch.randint(0, EDGES, (20000,), device="cuda")
    head, tail, relation = index[0, batch], index[1, batch], kind[batch]
    wrong = torch.randint(0, ENTITIES, (20000,), device="cuda")
    half = torch.rand(20000, device="cuda") < 0.5
    yes = net.score(x, head, relation, tail)
    no = net.score(x, torch.where(half, wrong, head), relation, torch.where(half, tail, wrong))
    loss = F.binary_cross_entropy_with_logits(torch.cat([yes, no]), torch.cat([torch.ones_like(yes), torch.zeros_like(no)]))
    loss = loss + 1e-2 * (x.pow(2).mean() + net.relations.pow(2).mean())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
net.eval()
with torch.no_grad():
    x = net(torch.cat([index, index.flip(0)], 1), torch.cat([kind, kind + RELATIONS]))
    ranks = []
    for part in torch.arange(0, 4000, device="cuda").split(1000):
        scores = (x[index[0, part]] * net.relations[kind[part]]) @ x.T
        ranks.append((scores >= scores.gather(1, index[1, part][:, None])).sum(1))
    print((1 / torch.cat(ranks).float()).mean().item())
