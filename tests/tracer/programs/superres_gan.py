"""Super resolution: dense residual blocks, pixel shuffle, a loss over features of a frozen network, a critic with a gradient penalty."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(118)


class Dense(nn.Module):
    def __init__(self, c=64, g=32):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(c + i * g, g if i < 4 else c, 3, 1, 1) for i in range(5))

    def forward(self, x):
        y = [x]
        for i, c in enumerate(self.convs):
            h = c(torch.cat(y, 1))
            y.append(F.leaky_relu(h, 0.2, inplace=True) if i < 4 else h)
        return y[-1] * 0.2 + x


class Generator(nn.Module):
    def __init__(self, blocks=8):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 64, 3, 1, 1), nn.Sequential(*[Dense() for _ in range(blocks)], nn.Conv2d(64, 64, 3, 1, 1))
        self.up = nn.Sequential(*[m for _ in range(2) for m in (nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU())])
        self.last = nn.Conv2d(64, 3, 9, 1, 4)

    def forward(self, x):
        x = self.first(x)
        return self.last(self.up(x + self.body(x))).tanh()


def critic():
    layers, c = [], 3
    for o in (64, 128, 256, 512):
        layers += [spectral_norm(nn.Conv2d(c, o, 4, 2, 1)), nn.LeakyReLU(0.2)]
        c = o
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, 1, 0))


def features():
    layers, c = [], 3
    for o, n in ((64, 2), (128, 2), (256, 3)):
        for _ in range(n):
            layers += [nn.Conv2d(c, o, 3, 1, 1), nn.ReLU(inplace=True)]
            c = o
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers[:-2]).eval().requires_grad_(False)


g, d, vgg = Generator().cuda(), critic().cuda(), features().cuda()
og, od = torch.optim.Adam(g.parameters(), lr=1e-4, betas=(0.9, 0.99)), torch.optim.Adam(d.parameters(), lr=1e-4, betas=(0.0, 0.9))
for step in range(7):
    high = torch.rand(10, 3, 160, 160).cuda() * 2 - 1
    low = F.interpolate(high, scale_factor=0.25, mode="bicubic", antialias=True)
    fake = g(low)
    for p in d.parameters():
        p.requires_grad_(True)
    mix = torch.rand(10, 1, 1, 1, device="cuda")
    between = (mix * high + (1 - mix) * fake.detach()).requires_grad_(True)
    slope = torch.autograd.grad(d(between).sum(), between, create_graph=True)[0]
    penalty = ((slope.flatten(1).norm(2, 1) - 1) ** 2).mean()
    loss_d = d(fake.detach()).mean() - d(high).mean() + 10 * penalty
    od.zero_grad()
    loss_d.backward()
    od.step()
    for p in d.parameters():
        p.requires_grad_(False)
    loss_g = 0.01 * F.l1_loss(fake, high) + F.l1_loss(vgg(fake), vgg(high)) - 0.005 * d(fake).mean()
    og.zero_grad()
    loss_g.backward()
    og.step()
    print(step, loss_d.item(), loss_g.item())
g.eval()
with torch.no_grad():
    for h, w in ((120, 180), (200, 128)):
        print(g(torch.rand(1, 3, h, w).cuda()).shape)
