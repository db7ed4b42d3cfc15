"""A U-Net whose skips pass through attention gates, squeeze and excitation, group norm, bilinear upsampling; bfloat16, focal Tversky loss, gradients accumulated, then flips averaged."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1004)


class Double(nn.Module):
    def __init__(self, c, o):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(8, o))
        self.short = nn.Conv2d(c, o, 1)
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(o, o // 8, 1), nn.ReLU(), nn.Conv2d(o // 8, o, 1), nn.Sigmoid())

    def forward(self, x):
        y = self.body(x)
        return F.silu(y * self.squeeze(y) + self.short(x))


class Gate(nn.Module):
    def __init__(self, skip, deep, inner):
        super().__init__()
        self.s, self.d, self.psi = nn.Conv2d(skip, inner, 1), nn.Conv2d(deep, inner, 1), nn.Conv2d(inner, 1, 1)

    def forward(self, skip, deep):
        return skip * torch.sigmoid(self.psi(F.relu(self.s(skip) + self.d(deep))))


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(Double(a, b) for a, b in zip((3,) + widths, widths))
        self.gates = nn.ModuleList(Gate(a, b, a // 2) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(Double(a + b, a) for a, b in zip(widths, widths[1:]))
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        kept = []
        for i, d in enumerate(self.down):
            x = d(F.avg_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = self.up[i](torch.cat([self.gates[i](kept[i], x), x], 1))
        return self.out(x)


def tversky(logits, label):
    p, t = logits.float().sigmoid().flatten(2), label.flatten(2)
    hit, over, under = (p * t).sum(-1), (p * (1 - t)).sum(-1), ((1 - p) * t).sum(-1)
    return (1 - (hit + 1) / (hit + 0.3 * over + 0.7 * under + 1)).pow(0.75).mean()


net = UNet().cuda()
optimizer = torch.optim.RAdam(net.parameters(), 1e-3)
for step in range(6):
    optimizer.zero_grad()
    for part in range(2):
        side = 320 if (step + part) % 2 else 256
        x, y = torch.rand(6, 3, side, side, device="cuda"), (torch.rand(6, 2, side, side, device="cuda") > 0.7).float()
        with torch.autocast("cuda", torch.bfloat16):
            logits = net(x)
        loss = (tversky(logits, y) + F.binary_cross_entropy_with_logits(logits.float(), y)) / 2
        loss.backward()
    optimizer.step()
    print(step, loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for side in (256, 384, 512):
        x = torch.rand(4, 3, side, side, device="cuda")
        total = sum(net(x.flip(d) if d else x).flip(d if d else ()).float().sigmoid() for d in ((), (2,), (3,), (2, 3)))
        print(side, (total > 2).float().mean().item())
