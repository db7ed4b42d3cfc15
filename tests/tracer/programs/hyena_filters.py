"""Hyena operators: implicit long filters from a small network over positions, convolutions by Fourier transforms, short depthwise filters and gates; Sophia-like clipped steps."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1007)
D, WORDS = 384, 8192


class Filter(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(33, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, D * order))
        self.decay = nn.Parameter(torch.linspace(math.log(0.3), math.log(1.5), D * order))

    def forward(self, length):
        t = torch.linspace(0, 1, length, device=self.decay.device)[:, None]
        bands = torch.arange(1, 17, device=t.device)[None] * t * 2 * math.pi
        h = self.net(torch.cat([t, bands.sin(), bands.cos()], -1))
        return (h * (-t * self.decay.exp() * 8).exp()).T


class Hyena(nn.Module):
    def __init__(self, order=2):
        super().__init__()
        self.order, self.inside, self.out = order, nn.Linear(D, (order + 1) * D), nn.Linear(D, D)
        self.short, self.filter, self.bias = nn.Conv1d((order + 1) * D, (order + 1) * D, 3, padding=2, groups=(order + 1) * D), Filter(order), nn.Parameter(torch.zeros(order, D, 1))

    def forward(self, x):
        length = x.shape[1]
        *gates, v = self.short(self.inside(x).transpose(1, 2))[..., :length].chunk(self.order + 1, 1)
        for gate, h, bias in zip(gates, self.filter(length).chunk(self.order), self.bias):
            wide = torch.fft.irfft(torch.fft.rfft(v.float(), 2 * length) * torch.fft.rfft(h, 2 * length), 2 * length)[..., :length]
            v = gate * (wide + v * bias)
        return self.out(v.transpose(1, 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, D), nn.Linear(D, WORDS, bias=False)
        self.norms, self.mixers = nn.ModuleList(nn.LayerNorm(D) for _ in range(9)), nn.ModuleList(Hyena() for _ in range(4))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)) for _ in range(4))

    def forward(self, ids):
        x = self.words(ids)
        for i, (mixer, mlp) in enumerate(zip(self.mixers, self.mlps)):
            x = x + mixer(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[8](x))


net = Net().cuda()
moments = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in net.parameters()}
for step in range(7):
    ids = torch.randint(0, WORDS, (4, 2049 if step % 2 else 1025)).cuda()
    loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p, (m, h) in moments.items():
            m.mul_(0.96).add_(p.grad, alpha=0.04)
            if step % 3 == 0:
                h.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
            p.add_((m / (h * 4 + 1e-12)).clamp(-1, 1), alpha=-2e-4)
    print(step, loss.item())
with torch.no_grad():
    for length in (1024, 3000, 4096):
        print(length, net(torch.randint(0, WORDS, (2, length), device="cuda"))[:, -1].softmax(-1).amax().item())
