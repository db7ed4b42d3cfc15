"""A normalizing flow: activations normalized by the first batch, invertible mixing of channels with a determinant, affine couplings, three scales, bits per pixel, then samples by the inverse."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(208)


class Step(nn.Module):
    def __init__(self, c, width=256):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(1, c, 1, 1)), nn.Parameter(torch.zeros(1, c, 1, 1))
        self.mix = nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0])
        self.net = nn.Sequential(nn.Conv2d(c // 2, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 1), nn.ReLU(), nn.Conv2d(width, c, 3, 1, 1))
        nn.init.zeros_(self.net[-1].weight)
        self.ready = False

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.scale.copy_(1 / (x.std((0, 2, 3), keepdim=True) + 1e-6))
                self.shift.copy_(-x.mean((0, 2, 3), keepdim=True))
            self.ready = True
        area = x.shape[2] * x.shape[3]
        x = (x + self.shift) * self.scale
        change = area * self.scale.abs().log().sum() + area * torch.slogdet(self.mix)[1]
        x = F.conv2d(x, self.mix[:, :, None, None])
        a, b = x.chunk(2, 1)
        log, shift = self.net(a).chunk(2, 1)
        log = torch.sigmoid(log + 2).log()
        return torch.cat([a, (b + shift) * log.exp()], 1), change + log.sum((1, 2, 3))

    def inverse(self, y):
        a, b = y.chunk(2, 1)
        log, shift = self.net(a).chunk(2, 1)
        x = torch.cat([a, b / torch.sigmoid(log + 2) - shift], 1)
        x = F.conv2d(x, torch.inverse(self.mix)[:, :, None, None])
        return x / self.scale - self.shift


class Flow(nn.Module):
    def __init__(self, scales=3, steps=5):
        super().__init__()
        self.scales, c = nn.ModuleList(), 3
        for i in range(scales):
            c *= 4
            self.scales.append(nn.ModuleList(Step(c) for _ in range(steps)))
            c = c // 2 if i < scales - 1 else c
        self.mean, self.log = nn.Parameter(torch.zeros(1, c, 1, 1)), nn.Parameter(torch.zeros(1, c, 1, 1))

    def forward(self, x):
        total, out = 0, []
        for i, steps in enumerate(self.scales):
            x = F.pixel_unshuffle(x, 2)
            for step in steps:
                x, change = step(x)
                total = total + change
            if i < len(self.scales) - 1:
                x, z = x.chunk(2, 1)
                out.append(z)
        prior = torch.distributions.Normal(self.mean, self.log.exp())
        total = total + prior.log_prob(x).sum((1, 2, 3)) + sum(-0.5 * (z**2 + math.log(2 * math.pi)).sum((1, 2, 3)) for z in out)
        return total

    @torch.no_grad()
    def sample(self, n, size, heat=0.7):
        c, s = self.mean.shape[1], size >> len(self.scales)
        x = self.mean + heat * self.log.exp() * torch.randn(n, c, s, s, device="cuda")
        for i, steps in reversed(list(enumerate(self.scales))):
            if i < len(self.scales) - 1:
                x = torch.cat([x, heat * torch.randn_like(x)], 1)
            for step in reversed(steps):
                x = step.inverse(x)
            x = F.pixel_shuffle(x, 2)
        return x


model = Flow().cuda()
optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 10))
for step in range(7):
    x = torch.randint(0, 256, (24, 3, 64, 64), dtype=torch.uint8).cuda()
    x = (x.float() + torch.rand(x.shape, device="cuda")) / 256 - 0.5
    loss = (-model(x) / (math.log(2) * 3 * 64 * 64) + 8).mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 50.0)
    optimizer.step()
    warm.step()
    print(step, loss.item(), norm.item())
pictures = model.sample(40, 64)
print(pictures.shape)
