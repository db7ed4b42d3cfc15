"""Pictures from styles: filters modulated for each sample in one grouped convolution, noise, skips to colours, a critic that compares a batch, lazy penalties on real gradients and paths."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(211)


class Modulated(nn.Module):
    def __init__(self, c, o, kernel, style=256, demodulate=True, up=False):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(1, o, c, kernel, kernel)), nn.Linear(style, c)
        self.kernel, self.demodulate, self.up, self.gain = kernel, demodulate, up, 1 / math.sqrt(c * kernel**2)
        nn.init.ones_(self.style.bias)

    def forward(self, x, w):
        b, c, h, s = x.shape
        weight = self.gain * self.weight * self.style(w)[:, None, :, None, None]
        if self.demodulate:
            weight = weight * (weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
        if self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            h, s = 2 * h, 2 * s
        y = F.conv2d(x.reshape(1, b * c, h, s), weight.flatten(0, 1), padding=self.kernel // 2, groups=b)
        return y.view(b, -1, h, s)


class Generator(nn.Module):
    def __init__(self, size=64, style=256, base=256):
        super().__init__()
        self.map = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(style, style), nn.LeakyReLU(0.2))])
        self.start, self.layers, self.colours, self.noise = nn.Parameter(torch.randn(1, base, 4, 4)), nn.ModuleList(), nn.ModuleList(), nn.ParameterList()
        c, s = base, 4
        while s < size:
            s, o = 2 * s, max(64, base * 16 // s) if s > 8 else base
            self.layers.append(nn.ModuleList([Modulated(c, o, 3, style, up=True), Modulated(o, o, 3, style)]))
            self.colours.append(Modulated(o, 3, 1, style, demodulate=False))
            self.noise.append(nn.Parameter(torch.zeros(2)))
            c = o

    def forward(self, z, mix=None):
        w = self.map(z * (z.pow(2).mean(1, keepdim=True) + 1e-8).rsqrt())
        styles = [w] * len(self.layers)
        if mix is not None:
            other = self.map(mix)
            styles[2:] = [other] * (len(styles) - 2)
        x, picture = self.start.expand(len(z), -1, -1, -1), None
        for pair, colour, noise, s in zip(self.layers, self.colours, self.noise, styles):
            for i, layer in enumerate(pair):
                x = layer(x, s)
                x = F.leaky_relu(x + noise[i] * torch.randn(len(x), 1, *x.shape[2:], device=x.device), 0.2)
            new = colour(x, s)
            picture = new if picture is None else new + F.interpolate(picture, scale_factor=2, mode="nearest")
        return picture, w


class Critic(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        layers, c = [nn.Conv2d(3, 64, 1), nn.LeakyReLU(0.2)], 64
        while size > 4:
            o = min(256, 2 * c)
            layers += [nn.Conv2d(c, c, 3, 1, 1), nn.LeakyReLU(0.2), nn.Conv2d(c, o, 3, 2, 1), nn.LeakyReLU(0.2)]
            c, size = o, size // 2
        self.net, self.last = nn.Sequential(*layers), nn.Sequential(nn.Conv2d(c + 1, c, 3, 1, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(c * 16, c), nn.LeakyReLU(0.2), nn.Linear(c, 1))

    def forward(self, x):
        x = self.net(x)
        groups = x.view(4, -1, *x.shape[1:])
        spread = (groups.var(0) + 1e-8).sqrt().mean((1, 2, 3), keepdim=True).repeat(4, 1, *x.shape[2:])
        return self.last(torch.cat([x, spread], 1))


generator, critic = Generator().cuda(), Critic().cuda()
average = copy.deepcopy(generator).requires_grad_(False)
g, d = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.99)), torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.99))
length = torch.zeros((), device="cuda")
for step in range(8):
    real = torch.randn(16, 3, 64, 64).cuda()
    with torch.no_grad():
        fake = generator(torch.randn(16, 256, device="cuda"), torch.randn(16, 256, device="cuda"))[0]
    loss_d = F.softplus(critic(fake)).mean() + F.softplus(-critic(real)).mean()
    d.zero_grad()
    loss_d.backward()
    d.step()
    if step % 4 == 0:
        real.requires_grad_(True)
        grad, = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
        d.zero_grad()
        (10 / 2 * 4 * grad.pow(2).sum((1, 2, 3)).mean()).backward()
        d.step()
    loss_g = F.softplus(-critic(generator(torch.randn(16, 256, device="cuda"))[0])).mean()
    g.zero_grad()
    loss_g.backward()
    g.step()
    if step % 4 == 3:
        picture, w = generator(torch.randn(8, 256, device="cuda"))
        grad, = torch.autograd.grad((picture * torch.randn_like(picture) / 64).sum(), w, create_graph=True)
        far = grad.pow(2).sum(1).sqrt()
        length = length.lerp(far.mean().detach(), 0.01)
        g.zero_grad()
        (2 * 4 * (far - length).pow(2).mean()).backward()
        g.step()
    with torch.no_grad():
        for a, b in zip(average.parameters(), generator.parameters()):
            a.lerp_(b, 0.002)
    print(step, loss_d.item(), loss_g.item())
with torch.no_grad():
    print(average(torch.randn(64, 256, device="cuda"))[0].shape)
