"""A Wasserstein GAN with a gradient penalty: residual generator and critic with up- and down-sampling, five critic steps a generator step, samples kept."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(818)


class Up(nn.Module):
    def __init__(self, c, o):
        super().__init__()
        self.n1, self.n2, self.c1, self.c2, self.s = nn.BatchNorm2d(c), nn.BatchNorm2d(o), nn.Conv2d(c, o, 3, 1, 1), nn.Conv2d(o, o, 3, 1, 1), nn.Conv2d(c, o, 1)

    def forward(self, x):
        y = self.c1(F.interpolate(F.relu(self.n1(x)), scale_factor=2))
        return self.c2(F.relu(self.n2(y))) + self.s(F.interpolate(x, scale_factor=2))


class Down(nn.Module):
    def __init__(self, c, o, down=True):
        super().__init__()
        self.c1, self.c2, self.s, self.down = nn.Conv2d(c, o, 3, 1, 1), nn.Conv2d(o, o, 3, 1, 1), nn.Conv2d(c, o, 1), down

    def forward(self, x):
        y, s = self.c2(F.relu(self.c1(F.relu(x)))), self.s(x)
        return F.avg_pool2d(y, 2) + F.avg_pool2d(s, 2) if self.down else y + s


class Generator(nn.Module):
    def __init__(self, w=128):
        super().__init__()
        self.first, self.ups, self.last, self.w = nn.Linear(128, w * 16), nn.Sequential(Up(w, w), Up(w, w), Up(w, w)), nn.Sequential(nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, 3, 3, 1, 1), nn.Tanh()), w

    def forward(self, z):
        return self.last(self.ups(self.first(z).view(-1, self.w, 4, 4)))


class Critic(nn.Module):
    def __init__(self, w=128):
        super().__init__()
        self.net, self.out = nn.Sequential(nn.Conv2d(3, w, 3, 1, 1), Down(w, w), Down(w, w), Down(w, w, False)), nn.Linear(w, 1)

    def forward(self, x):
        return self.out(F.relu(self.net(x)).mean((2, 3)))


G, C = Generator().cuda(), Critic().cuda()
og, oc = torch.optim.Adam(G.parameters(), 2e-4, (0.0, 0.9)), torch.optim.Adam(C.parameters(), 2e-4, (0.0, 0.9))
for step in range(4):
    for _ in range(5):
        real = torch.rand(64, 3, 32, 32).mul(2).sub(1).cuda()
        with torch.no_grad():
            fake = G(torch.randn(64, 128, device="cuda"))
        t = torch.rand(64, 1, 1, 1, device="cuda")
        mixed = (t * real + (1 - t) * fake).requires_grad_()
        slope = torch.autograd.grad(C(mixed).sum(), mixed, create_graph=True)[0]
        loss = C(fake).mean() - C(real).mean() + 10 * (slope.flatten(1).norm(2, 1) - 1).square().mean()
        oc.zero_grad()
        loss.backward()
        oc.step()
    lost = -C(G(torch.randn(128, 128, device="cuda"))).mean()
    og.zero_grad()
    lost.backward()
    og.step()
    print(step, loss.item(), lost.item())
G.eval()
with torch.no_grad():
    print(torch.cat([G(torch.randn(100, 128, device="cuda")).cpu() for _ in range(3)]).std().item())
