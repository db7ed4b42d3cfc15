"""A graph of facts: complex embeddings with sparse gradients, Adagrad that keeps sums of squares, many negatives that weigh themselves, then ranks over all entities with known facts left out."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(407)
ENTITIES, RELATIONS, WIDTH = 200_000, 500, 128


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.entity, self.relation = nn.Embedding(ENTITIES, 2 * WIDTH, sparse=True), nn.Embedding(RELATIONS, 2 * WIDTH, sparse=True)
        nn.init.uniform_(self.entity.weight, -0.05, 0.05)
        nn.init.uniform_(self.relation.weight, -0.05, 0.05)

    def query(self, h, r):
        a, b = torch.view_as_complex(self.entity(h).view(-1, WIDTH, 2)), torch.view_as_complex(self.relation(r).view(-1, WIDTH, 2))
        return torch.view_as_real(a * b).flatten(1)

    def forward(self, h, r, t, negatives):
        q = self.query(h, r)
        good = (q * self.entity(t)).sum(-1)
        bad = torch.bmm(self.entity(negatives), q[:, :, None]).squeeze(-1)
        return good, bad, q


model = Complex().cuda()
optimizer = torch.optim.Adagrad(model.parameters(), 0.1)
facts = torch.stack([torch.randint(0, ENTITIES, (50_000,)), torch.randint(0, RELATIONS, (50_000,)), torch.randint(0, ENTITIES, (50_000,))], 1).pin_memory()
order = torch.randperm(50_000)
for step in range(8):
    batch = facts[order[step * 2048:(step + 1) * 2048]].cuda(non_blocking=True)
    h, r, t = batch.unbind(1)
    good, bad, q = model(h, r, t, torch.randint(0, ENTITIES, (2048, 128), device="cuda"))
    weight = F.softmax(bad.detach(), -1)
    loss = -(F.logsigmoid(good).mean() + (weight * F.logsigmoid(-bad)).sum(-1).mean()) / 2 + 1e-3 * q.abs().pow(3).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
ranks = []
with torch.no_grad():
    for part in facts[:4096].split(512):
        h, r, t = part.cuda().unbind(1)
        scores = model.query(h, r) @ model.entity.weight.t()
        known = torch.randint(0, ENTITIES, (512, 20), device="cuda")
        mine = scores.gather(1, t[:, None])
        scores.scatter_(1, known, float("-inf"))
        ranks.append((scores > mine).sum(1) + 1)
    ranks = torch.cat(ranks).float()
    print(ranks.mean().item(), (1 / ranks).mean().item(), (ranks <= 10).float().mean().item())
