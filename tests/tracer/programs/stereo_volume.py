"""Depth from two cameras: shared features with spatial pyramids, a volume of group-wise correlations, an hourglass of 3D convolutions, disparities as expectations, bfloat16 autocast and an EMA of weights."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(408)


def conv(c, o, k=3, s=1, d=1, dims=2):
    kind, norm = (nn.Conv2d, nn.BatchNorm2d) if dims == 2 else (nn.Conv3d, nn.BatchNorm3d)
    return nn.Sequential(kind(c, o, k, s, d * (k - 1) // 2, d, bias=False), norm(o), nn.ReLU(inplace=True))


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(conv(3, 32, s=2), conv(32, 32), conv(32, 32))
        self.second = nn.Sequential(conv(32, 64, s=2), conv(64, 64), conv(64, 128, d=2), conv(128, 128, d=4))
        self.pools = nn.ModuleList(nn.Sequential(nn.AvgPool2d(n, n), conv(128, 32, 1)) for n in (16, 8, 4))
        self.last = nn.Sequential(conv(128 + 96, 128), nn.Conv2d(128, 96, 1))

    def forward(self, x):
        x = self.second(self.first(x))
        return self.last(torch.cat([x] + [F.interpolate(p(x), size=x.shape[2:], mode="bilinear") for p in self.pools], 1))


class Hourglass(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.down, self.deep = nn.Sequential(conv(c, 2 * c, s=2, dims=3), conv(2 * c, 2 * c, dims=3)), nn.Sequential(conv(2 * c, 4 * c, s=2, dims=3), conv(4 * c, 4 * c, dims=3))
        self.up, self.top = nn.ConvTranspose3d(4 * c, 2 * c, 3, 2, 1, 1, bias=False), nn.ConvTranspose3d(2 * c, c, 3, 2, 1, 1, bias=False)

    def forward(self, x):
        a = self.down(x)
        return F.relu(self.top(F.relu(self.up(self.deep(a)) + a)) + x)


class Stereo(nn.Module):
    def __init__(self, most=96, groups=24):
        super().__init__()
        self.most, self.groups = most // 4, groups
        self.features, self.enter, self.glasses = Features(), conv(groups, 24, dims=3), nn.ModuleList(Hourglass() for _ in range(2))
        self.heads = nn.ModuleList(nn.Sequential(conv(24, 24, dims=3), nn.Conv3d(24, 1, 3, 1, 1, bias=False)) for _ in range(2))

    def forward(self, left, right):
        with torch.autocast("cuda", torch.bfloat16):
            a, b = self.features(left), self.features(right)
            n, c, h, w = a.shape
            volume = a.new_zeros(n, self.groups, self.most, h, w)
            for d in range(self.most):
                prod = a[..., d:] * b[..., :w - d] if d else a * b
                volume[:, :, d, :, d:] = prod.view(n, self.groups, c // self.groups, h, w - d).mean(2)
            x, found = self.enter(volume), []
            for glass, head in zip(self.glasses, self.heads):
                x = glass(x)
                cost = F.interpolate(head(x).float(), scale_factor=4, mode="trilinear").squeeze(1)
                found.append((cost.softmax(1) * torch.arange(4 * self.most, device=x.device)[None, :, None, None]).sum(1))
        return found


model = Stereo().cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.9)
for step in range(5):
    w = (256, 320)[step % 2]
    found = model(torch.rand(2, 3, 192, w, device="cuda"), torch.rand(2, 3, 192, w, device="cuda"))
    truth = torch.rand(2, 192, w, device="cuda") * 110
    valid = truth < 96
    loss = sum(k * F.smooth_l1_loss(f[valid], truth[valid]) for k, f in zip((0.5, 1.0), found))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(average.state_dict().values(), model.state_dict().values()):
            p.mul_(0.99).add_(q, alpha=0.01) if p.is_floating_point() else p.copy_(q)
    print(step, loss.item())
with torch.no_grad():
    print(average(torch.rand(1, 3, 256, 512, device="cuda"), torch.rand(1, 3, 256, 512, device="cuda"))[-1].shape)
