"""Meta-learning: inner steps of SGD that stay in the graph, gradients of gradients, an outer Adam."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


class Net(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        sizes = [3, c, c, c, c]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.GroupNorm(8, c) for _ in self.convs)
        self.head = nn.Linear(c * 25, 5)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.max_pool2d(F.relu(norm(conv(x))), 2)
        return self.head(x.flatten(1))


torch.manual_seed(32)
net = Net().cuda()
outer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(5):
    outer.zero_grad()
    total = 0.0
    for task in range(4):
        x, y = torch.randn(2, 50, 3, 84, 84, device="cuda"), torch.randint(0, 5, (2, 50), device="cuda")
        fast = dict(net.named_parameters())
        for inner in range(3):
            loss = F.cross_entropy(functional_call(net, fast, (x[0],)), y[0])
            grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
            fast = {k: p - 0.05 * g for (k, p), g in zip(fast.items(), grads)}
        meta = F.cross_entropy(functional_call(net, fast, (x[1],)), y[1]) / 4
        meta.backward()
        total += meta.item()
    outer.step()
    print(step, total)
