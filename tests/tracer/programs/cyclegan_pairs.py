"""CycleGAN: two generators of residual blocks with instance norm and reflected borders, two discriminators of patches, a buffer of older pictures, identity and cycle losses."""
import itertools
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1013)
random.seed(1013)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c), nn.ReLU(True), nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c))

    def forward(self, x):
        return x + self.body(x)


def generator(w=48):
    down = [nn.ReflectionPad2d(3), nn.Conv2d(3, w, 7), nn.InstanceNorm2d(w), nn.ReLU(True)]
    for c in (w, 2 * w):
        down += [nn.Conv2d(c, 2 * c, 3, 2, 1), nn.InstanceNorm2d(2 * c), nn.ReLU(True)]
    up = []
    for c in (4 * w, 2 * w):
        up += [nn.ConvTranspose2d(c, c // 2, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(c // 2), nn.ReLU(True)]
    return nn.Sequential(*down, *(Residual(4 * w) for _ in range(5)), *up, nn.ReflectionPad2d(3), nn.Conv2d(w, 3, 7), nn.Tanh())


def discriminator(w=64):
    layers = [nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for c in (w, 2 * w, 4 * w):
        layers += [nn.Conv2d(c, 2 * c, 4, 2 if c < 4 * w else 1, 1), nn.InstanceNorm2d(2 * c), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * w, 1, 4, 1, 1))


class Buffer:
    def __init__(self):
        self.kept = []

    def ask(self, pictures):
        out = []
        for p in pictures.detach():
            if len(self.kept) < 8:
                self.kept.append(p[None].clone())
                out.append(p[None])
            elif random.random() < 0.5:
                i = random.randrange(8)
                out.append(self.kept[i])
                self.kept[i] = p[None].clone()
            else:
                out.append(p[None])
        return torch.cat(out)


to_b, to_a, of_a, of_b = (m.cuda() for m in (generator(), generator(), discriminator(), discriminator()))
g = torch.optim.Adam(itertools.chain(to_b.parameters(), to_a.parameters()), 2e-4, betas=(0.5, 0.999))
d = torch.optim.Adam(itertools.chain(of_a.parameters(), of_b.parameters()), 2e-4, betas=(0.5, 0.999))
buffers = Buffer(), Buffer()
for step in range(6):
    a, b = torch.rand(2, 3, 160, 160).cuda() * 2 - 1, torch.rand(2, 3, 160, 160).cuda() * 2 - 1
    for p in itertools.chain(of_a.parameters(), of_b.parameters()):
        p.requires_grad_(False)
    fake_b, fake_a = to_b(a), to_a(b)
    loss = 5 * (F.l1_loss(to_b(b), b) + F.l1_loss(to_a(a), a)) + 10 * (F.l1_loss(to_a(fake_b), a) + F.l1_loss(to_b(fake_a), b))
    for judge, fake in ((of_b, fake_b), (of_a, fake_a)):
        told = judge(fake)
        loss = loss + F.mse_loss(told, torch.ones_like(told))
    g.zero_grad()
    loss.backward()
    g.step()
    for judge, real, fake, buffer in ((of_a, a, fake_a, buffers[0]), (of_b, b, fake_b, buffers[1])):
        for p in judge.parameters():
            p.requires_grad_(True)
        yes, no = judge(real), judge(buffer.ask(fake))
        dloss = (F.mse_loss(yes, torch.ones_like(yes)) + F.mse_loss(no, torch.zeros_like(no))) / 2
        judge.zero_grad()
        dloss.backward()
    d.step()
    print(step, loss.item(), dloss.item())
with torch.no_grad():
    for side in (160, 224, 320):
        print(side, to_b(torch.rand(3, 3, side, side, device="cuda") * 2 - 1).abs().mean().item())
