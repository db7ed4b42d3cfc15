"""Pictures from pictures (pix2pix): a U-Net with dropout against a critic of patches, instance norm, L1 and a least-squares loss, one picture size, float32."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1116)


class Level(nn.Module):
    def __init__(self, outer, inner, within=None, inp=None, outermost=False, dropout=False):
        super().__init__()
        inp = inp or outer
        down = [nn.Conv2d(inp, inner, 4, 2, 1, bias=False)]
        up = [nn.ReLU(True), nn.ConvTranspose2d(inner * (1 if within is None else 2), outer, 4, 2, 1, bias=outermost)]
        if not outermost:
            down = [nn.LeakyReLU(0.2), *down]
            up.append(nn.InstanceNorm2d(outer))
        if within is not None and not outermost:
            down.append(nn.InstanceNorm2d(inner))
        if dropout:
            up.append(nn.Dropout(0.5))
        if outermost:
            up.append(nn.Tanh())
        self.model, self.outermost = nn.Sequential(*down, *([within] if within is not None else []), *up), outermost

    def forward(self, x):
        y = self.model(x)
        return y if self.outermost else torch.cat([x, y], 1)


w = 40
net = Level(8 * w, 8 * w)
for dropout in (True, True):
    net = Level(8 * w, 8 * w, net, dropout=dropout)
for outer, inner in ((4 * w, 8 * w), (2 * w, 4 * w), (w, 2 * w)):
    net = Level(outer, inner, net)
G = Level(3, w, net, inp=3, outermost=True).cuda()
layers, c = [nn.Conv2d(6, 48, 4, 2, 1), nn.LeakyReLU(0.2, True)], 48
for o, s in ((96, 2), (192, 2), (384, 1)):
    layers += [nn.Conv2d(c, o, 4, s, 1), nn.InstanceNorm2d(o), nn.LeakyReLU(0.2, True)]
    c = o
D = nn.Sequential(*layers, nn.Conv2d(c, 1, 4, 1, 1)).cuda()
og, od = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999)), torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
for step in range(8):
    a, b = torch.rand(8, 3, 256, 256).mul(2).sub(1).cuda(), torch.rand(8, 3, 256, 256).mul(2).sub(1).cuda()
    made = G(a)
    D.requires_grad_(True)
    lost = 0.5 * ((D(torch.cat([a, made.detach()], 1)) ** 2).mean() + ((D(torch.cat([a, b], 1)) - 1) ** 2).mean())
    od.zero_grad()
    lost.backward()
    od.step()
    D.requires_grad_(False)
    loss = ((D(torch.cat([a, made], 1)) - 1) ** 2).mean() + 100 * F.l1_loss(made, b)
    og.zero_grad()
    loss.backward()
    og.step()
    print(step, loss.item(), lost.item())
with torch.no_grad():
    print(G(torch.rand(12, 3, 256, 256, device="cuda")).std().item())
