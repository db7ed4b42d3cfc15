"""An energy-based model of images: samples by Langevin steps from a buffer that is kept on the card, spectral norm, a joint classifier, energies of other data compared."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(401)


class Block(nn.Module):
    def __init__(self, c, o, down):
        super().__init__()
        self.a, self.b = spectral_norm(nn.Conv2d(c, o, 3, 1, 1)), spectral_norm(nn.Conv2d(o, o, 3, 1, 1))
        self.skip, self.down = nn.Conv2d(c, o, 1) if c != o else nn.Identity(), down

    def forward(self, x):
        y = self.skip(x) + self.b(F.silu(self.a(F.silu(x))))
        return F.avg_pool2d(y, 2) if self.down else y


class Energy(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 96, 3, 1, 1), Block(96, 96, True), Block(96, 192, True), Block(192, 192, False), Block(192, 256, True))
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        return self.head(F.silu(self.net(x)).sum((2, 3)))


model = Energy().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.0, 0.999))
buffer = torch.rand(4000, 3, 48, 48, device="cuda")
for step in range(5):
    index = torch.randint(0, len(buffer), (48,), device="cuda")
    fresh = torch.rand(48, device="cuda") < 0.05
    x = torch.where(fresh[:, None, None, None], torch.rand(48, 3, 48, 48, device="cuda"), buffer[index])
    model.requires_grad_(False)
    model.eval()
    for _ in range(8):
        x = x.detach().requires_grad_(True)
        grad, = torch.autograd.grad(model(x).logsumexp(1).sum(), x)
        x = (x + 1.0 * grad.clamp(-0.03, 0.03) + 0.01 * torch.randn_like(x)).clamp(0, 1)
    model.train()
    model.requires_grad_(True)
    buffer[index] = x.detach()
    real, label = torch.rand(48, 3, 48, 48, device="cuda"), torch.randint(0, 10, (48,), device="cuda")
    logits = model(real)
    e_real, e_fake = -logits.logsumexp(1), -model(x.detach()).logsumexp(1)
    loss = e_real.mean() - e_fake.mean() + 0.1 * (e_real.pow(2) + e_fake.pow(2)).mean() + F.cross_entropy(logits, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    print(torch.cat([model(part).logsumexp(1) for part in buffer[:1000].split(200)]).mean().item())
