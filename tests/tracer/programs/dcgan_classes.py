"""A GAN with classes: transposed convolutions and embeddings of classes, spectral norm in the critic, hinge loss, two rates, an average of the generator, float32."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm as sn

torch.manual_seed(916)


class Generator(nn.Module):
    def __init__(self, w=64, classes=10):
        super().__init__()
        self.names = nn.Embedding(classes, 100)
        layers, c = [], 200
        for i, o in enumerate((8 * w, 4 * w, 2 * w, w)):
            layers += [nn.ConvTranspose2d(c, o, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
            c = o
        self.net = nn.Sequential(*layers, nn.ConvTranspose2d(c, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z, y):
        return self.net(torch.cat([z, self.names(y)], 1)[:, :, None, None])


class Critic(nn.Module):
    def __init__(self, w=64, classes=10):
        super().__init__()
        layers, c = [], 3
        for o in (w, 2 * w, 4 * w, 8 * w):
            layers += [sn(nn.Conv2d(c, o, 4, 2, 1)), nn.LeakyReLU(0.2)]
            c = o
        self.net, self.out, self.names = nn.Sequential(*layers), sn(nn.Linear(c, 1)), sn(nn.Embedding(classes, c))

    def forward(self, x, y):
        h = self.net(x).sum((2, 3))
        return self.out(h).squeeze(1) + (self.names(y) * h).sum(1)


G, C = Generator().cuda(), Critic().cuda()
slow = copy.deepcopy(G).eval().requires_grad_(False)
og, oc = torch.optim.Adam(G.parameters(), 1e-4, (0.0, 0.9)), torch.optim.Adam(C.parameters(), 4e-4, (0.0, 0.9))
for step in range(8):
    x, y = torch.rand(128, 3, 64, 64).mul(2).sub(1).cuda(), torch.randint(0, 10, (128,)).cuda()
    fake = G(torch.randn(128, 100, device="cuda"), y)
    loss = F.relu(1 - C(x, y)).mean() + F.relu(1 + C(fake.detach(), y)).mean()
    oc.zero_grad()
    loss.backward()
    oc.step()
    lost = -C(fake, y).mean()
    og.zero_grad()
    lost.backward()
    og.step()
    with torch.no_grad():
        for a, b in zip(slow.parameters(), G.parameters()):
            a.lerp_(b, 0.01)
    print(step, loss.item(), lost.item())
with torch.no_grad():
    print(torch.cat([slow(torch.randn(200, 100, device="cuda"), torch.randint(0, 10, (200,)).cuda()).cpu() for _ in range(2)]).std().item())
