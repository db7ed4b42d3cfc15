"""Codes of pictures against a critic, as VQGAN: features of a frozen VGG judge likeness, the critic's weight follows from two gradients of the last layer, two Adams."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(1316)


class Res(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.GroupNorm(32, i), nn.SiLU(), nn.Conv2d(i, o, 3, 1, 1)), nn.Sequential(nn.GroupNorm(32, o), nn.SiLU(), nn.Conv2d(o, o, 3, 1, 1))
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.b(self.a(x))


class Codes(nn.Module):
    def __init__(self, count=1024, width=128):
        super().__init__()
        self.table = nn.Embedding(count, width)
        nn.init.uniform_(self.table.weight, -1 / count, 1 / count)

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        near = torch.cdist(flat, self.table.weight).argmin(1)
        q = self.table(near).view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        return z + (q - z).detach(), F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())


encoder = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), Res(64, 64), nn.Conv2d(64, 64, 3, 2, 1), Res(64, 128), nn.Conv2d(128, 128, 3, 2, 1), Res(128, 128), nn.Conv2d(128, 128, 3, 2, 1), Res(128, 256), nn.Conv2d(256, 128, 1)).cuda()
codes = Codes().cuda()
decoder = nn.Sequential(
    nn.Conv2d(128, 256, 3, 1, 1), Res(256, 128), nn.Upsample(scale_factor=2), nn.Conv2d(128, 128, 3, 1, 1), Res(128, 128), nn.Upsample(scale_factor=2), nn.Conv2d(128, 128, 3, 1, 1),
    Res(128, 64), nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, 1, 1), Res(64, 64), nn.GroupNorm(32, 64), nn.SiLU(), nn.Conv2d(64, 3, 3, 1, 1)).cuda()
critic = nn.Sequential(
    nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True),
    nn.Conv2d(128, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.LeakyReLU(0.2, True), nn.Conv2d(256, 1, 4, 1, 1)).cuda()
vgg = torchvision.models.vgg16(weights=None).features[:16].cuda().eval().requires_grad_(False)
last = decoder[-1].weight
own = [*encoder.parameters(), *codes.parameters(), *decoder.parameters()]
first, second = torch.optim.Adam(own, 4.5e-6, betas=(0.5, 0.9)), torch.optim.Adam(critic.parameters(), 4.5e-6, betas=(0.5, 0.9))
for step in range(6):
    x = torch.rand(8, 3, 160, 160).cuda() * 2 - 1
    q, commit = codes(encoder(x))
    y = decoder(q)
    likeness = (x - y).abs().mean() + F.mse_loss(vgg(y), vgg(x))
    fooled = -critic(y).mean()
    g1, = torch.autograd.grad(likeness, last, retain_graph=True)
    g2, = torch.autograd.grad(fooled, last, retain_graph=True)
    weight = (g1.norm() / (g2.norm() + 1e-4)).clamp(0, 1e4).detach()
    loss = likeness + 0.8 * weight * fooled + commit
    first.zero_grad()
    loss.backward()
    first.step()
    judged = 0.5 * (F.relu(1 - critic(x.detach())).mean() + F.relu(1 + critic(y.detach())).mean())
    second.zero_grad()
    judged.backward()
    second.step()
    print(step, loss.item(), judged.item())
with torch.no_grad():
    print(decoder(codes(encoder(torch.rand(4, 3, 320, 320).cuda()))[0]).mean().item())
