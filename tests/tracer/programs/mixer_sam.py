"""An MLP-Mixer with stochastic depth, trained by sharpness-aware steps (two passes each), mixup and cut, an exponential average kept in half precision on the host."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(214)
torch.manual_seed(214)


class Mix(nn.Module):
    def __init__(self, tokens, width, drop):
        super().__init__()
        self.drop = drop
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across, self.within = (nn.Sequential(nn.Linear(n, m), nn.GELU(), nn.Dropout(0.1), nn.Linear(m, n)) for n, m in ((tokens, 256), (width, 4 * width)))

    def path(self, x):
        if not self.training:
            return x
        keep = torch.rand(len(x), 1, 1, device=x.device) >= self.drop
        return x * keep / (1 - self.drop)

    def forward(self, x):
        x = x + self.path(self.across(self.one(x).transpose(1, 2)).transpose(1, 2))
        return x + self.path(self.within(self.two(x)))


class Mixer(nn.Module):
    def __init__(self, size=128, patch=16, width=512, depth=8, classes=200):
        super().__init__()
        self.stem = nn.Conv2d(3, width, patch, patch)
        self.net = nn.Sequential(*[Mix((size // patch) ** 2, width, 0.1 * i / depth) for i in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.norm(self.net(self.stem(x).flatten(2).transpose(1, 2))).mean(1))


class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **words):
        super().__init__(params, dict(rho=rho, **words))
        self.base = base(self.param_groups, **words)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        for p in params:
            step = p.grad * (self.param_groups[0]["rho"] / (norm + 1e-12))
            self.state[p]["old"] = p.clone()
            p.add_(step)
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p].pop("old"))
        self.base.step()
        self.zero_grad()


model = Mixer().cuda()
optimizer = Sharp(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4)
kept = {n: p.detach().half().cpu() for n, p in model.state_dict().items()}
for step in range(7):
    images, labels = torch.randn(96, 3, 128, 128).cuda(), torch.randint(0, 200, (96,)).cuda()
    target, order, share = F.one_hot(labels, 200).float(), torch.randperm(96).cuda(), random.betavariate(0.5, 0.5)
    if step % 2:
        images = share * images + (1 - share) * images[order]
    else:
        side = int(128 * (1 - share) ** 0.5)
        y, x = random.randint(0, 128 - side), random.randint(0, 128 - side)
        images[:, :, y : y + side, x : x + side] = images[order, :, y : y + side, x : x + side]
    target = share * target + (1 - share) * target[order]
    for climb in (True, False):
        loss = -(model(images).log_softmax(-1) * target).sum(-1).mean()
        loss.backward()
        optimizer.climb() if climb else optimizer.step()
    for n, p in model.state_dict().items():
        kept[n].lerp_(p.half().cpu(), 0.1)
    print(step, loss.item())
now = {n: p.clone() for n, p in model.state_dict().items()}
model.load_state_dict(kept)
model.eval()
with torch.no_grad():
    right = sum((model(torch.randn(256, 3, 128, 128).cuda()).topk(5).indices == 1).any(1).sum() for _ in range(3))
model.load_state_dict(now)
print(right.item())
