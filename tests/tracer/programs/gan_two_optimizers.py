"""A DCGAN: two networks, two Adam optimizers, label smoothing, a fixed noise batch rendered now and then."""
import torch
from torch import nn


def generator(z=128, c=96):
    def up(a, b):
        return [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]

    return nn.Sequential(nn.ConvTranspose2d(z, 8 * c, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * c), nn.ReLU(True),
                         *up(8 * c, 4 * c), *up(4 * c, 2 * c), *up(2 * c, c), *up(c, c // 2),
                         nn.ConvTranspose2d(c // 2, 3, 4, 2, 1), nn.Tanh())


def discriminator(c=96):
    def down(a, b):
        return [nn.utils.parametrizations.spectral_norm(nn.Conv2d(a, b, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2, True)]

    return nn.Sequential(*down(3, c // 2), *down(c // 2, c), *down(c, 2 * c), *down(2 * c, 4 * c),
                         nn.Dropout2d(0.25), nn.Conv2d(4 * c, 1, 8), nn.Flatten(0))


def start(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)


torch.manual_seed(23)
device = torch.device("cuda")
G, D = generator().to(device), discriminator().to(device)
G.apply(start)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
fixed = torch.randn(64, 128, 1, 1, device=device)
for step in range(12):
    real = torch.rand(64, 3, 128, 128).to(device) * 2 - 1
    noise = torch.randn(64, 128, 1, 1, device=device)
    fake = G(noise)
    opt_d.zero_grad()
    out_real, out_fake = D(real), D(fake.detach())
    loss_d = criterion(out_real, torch.full_like(out_real, 0.9)) + criterion(out_fake, torch.zeros_like(out_fake))
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    out = D(fake)
    loss_g = criterion(out, torch.ones_like(out))
    loss_g.backward()
    opt_g.step()
    if step % 4 == 3:
        with torch.no_grad():
            picture = G(fixed).cpu()
        print(step, loss_d.item(), loss_g.item(), tuple(picture.shape))
