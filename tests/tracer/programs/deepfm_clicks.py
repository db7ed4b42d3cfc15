"""DeepFM for clicks: one table for all fields with offsets, factorization, a deep tower with batch norm, calibrated by temperature; two optimizers, metrics by sorting."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1020)
SIZES = [40000, 25000, 12000, 6000, 3000, 1500, 800, 400, 200, 100, 50, 24, 12, 7, 4, 2]


class DeepFM(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0] + SIZES[:-1]).cumsum(0))
        self.table, self.linear, self.bias = nn.Embedding(sum(SIZES), width), nn.Embedding(sum(SIZES), 1), nn.Parameter(torch.zeros(1))
        layers, inside = [], len(SIZES) * width + 13
        for outside in (400, 400, 400):
            layers += [nn.Linear(inside, outside), nn.BatchNorm1d(outside), nn.ReLU(), nn.Dropout(0.2)]
            inside = outside
        self.deep = nn.Sequential(*layers, nn.Linear(inside, 1))

    def forward(self, numbers, fields):
        index = fields + self.offsets
        e = self.table(index)
        crossed = (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(-1) / 2
        return self.bias + self.linear(index).sum((1, 2)) + crossed + self.deep(torch.cat([e.flatten(1), numbers], 1))[:, 0]


net = DeepFM().cuda()
tables = [net.table.weight, net.linear.weight]
rest = [p for n, p in net.named_parameters() if not n.startswith(("table", "linear"))]
first, second = torch.optim.Adagrad(tables, 0.05), torch.optim.Adam(rest, 1e-3)
for step in range(8):
    batch = 16384 if step % 4 else 24576
    numbers = torch.rand(batch, 13).cuda().log1p_()
    fields = torch.stack([torch.randint(0, n, (batch,)) for n in SIZES], 1).cuda()
    clicks = (torch.rand(batch, device="cuda") < 0.2).float()
    loss = F.binary_cross_entropy_with_logits(net(numbers, fields), clicks)
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
    print(step, loss.item())
net.eval()
scores, truth = [], []
with torch.no_grad():
    for batch in (32768, 32768, 10000):
        fields = torch.stack([torch.randint(0, n, (batch,), device="cuda") for n in SIZES], 1)
        scores.append(net(torch.rand(batch, 13, device="cuda"), fields))
        truth.append((torch.rand(batch, device="cuda") < 0.2).float())
scores, truth = torch.cat(scores), torch.cat(truth)
order = scores.argsort()
ranks = torch.empty_like(scores).scatter_(0, order, torch.arange(1, len(scores) + 1, device="cuda").float())
ones = truth.sum()
print("auc", (((ranks * truth).sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones))).item())
temperature = torch.ones(1, device="cuda", requires_grad=True)
lbfgs = torch.optim.LBFGS([temperature], max_iter=5)


def closure():
    lbfgs.zero_grad()
    loss = F.binary_cross_entropy_with_logits(scores / temperature, truth)
    loss.backward()
    return loss


lbfgs.step(closure)
print(temperature.item())
