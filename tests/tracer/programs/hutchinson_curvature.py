"""Second-order training: the diagonal of the Hessian by Hutchinson's probes (AdaHessian) on a small residual network, power iteration for the largest eigenvalue, Fisher information kept for a penalty on a second task."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(409)


class Block(nn.Module):
    def __init__(self, c, o, s):
        super().__init__()
        self.a, self.b, self.n1, self.n2 = nn.Conv2d(c, o, 3, s, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.GroupNorm(8, o), nn.GroupNorm(8, o)
        self.skip = nn.Sequential() if s == 1 and c == o else nn.Conv2d(c, o, 1, s, bias=False)

    def forward(self, x):
        return F.gelu(self.skip(x) + self.n2(self.b(F.gelu(self.n1(self.a(x))))))


model = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 20)).cuda()
parameters = list(model.parameters())
first = [torch.zeros_like(p) for p in parameters]
second = [torch.zeros_like(p) for p in parameters]


def batch(count=96):
    return torch.randn(count, 3, 48, 48, device="cuda"), torch.randint(0, 20, (count,), device="cuda")


for step in range(4):
    x, y = batch()
    loss = F.cross_entropy(model(x), y)
    grads = torch.autograd.grad(loss, parameters, create_graph=True)
    probes = [torch.randint_like(p, 2) * 2 - 1 for p in parameters]
    products = torch.autograd.grad(grads, parameters, grad_outputs=probes)
    with torch.no_grad():
        for p, g, h, v, m, s in zip(parameters, grads, products, probes, first, second):
            d = (h * v).abs()
            if d.ndim == 4:
                d = d.mean((2, 3), keepdim=True).expand_as(p)
            m.lerp_(g, 0.1)
            s.mul_(0.999).addcmul_(d, d, value=0.001)
            p.addcdiv_(m, (s / (1 - 0.999 ** (step + 1))).sqrt() + 1e-4, value=-1e-2 / (1 - 0.9 ** (step + 1)))
    del grads, products, probes
    print(step, loss.item())
x, y = batch(64)
vector = [torch.randn_like(p) for p in parameters]
for turn in range(3):
    grads = torch.autograd.grad(F.cross_entropy(model(x), y), parameters, create_graph=True)
    dot = sum((g * v).sum() for g, v in zip(grads, vector))
    vector = torch.autograd.grad(dot, parameters)
    length = torch.sqrt(sum(v.pow(2).sum() for v in vector))
    vector = [v / (length + 1e-6) for v in vector]
    print("eigenvalue", length.item())
del grads, dot, vector
fisher = [torch.zeros_like(p) for p in parameters]
for _ in range(4):
    x, y = batch(32)
    F.nll_loss(F.log_softmax(model(x), 1), y).backward()
    for f, p in zip(fisher, parameters):
        f.add_(p.grad.detach() ** 2, alpha=0.25)
    model.zero_grad()
anchor = [p.detach().clone() for p in parameters]
optimizer = torch.optim.SGD(parameters, 0.05, momentum=0.9, foreach=True)
for step in range(3):
    x, y = batch(128)
    loss = F.cross_entropy(model(x), y) + 50 * sum((f * (p - a).pow(2)).sum() for f, p, a in zip(fisher, parameters, anchor))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("second", step, loss.item())
