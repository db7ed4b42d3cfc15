"""A variational auto-encoder for images of 128 x 128: strided and transposed convolutions, batch norm, Adam, float32."""
import torch
from torch import nn
import torch.nn.functional as F


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True))


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class VAE(nn.Module):
    def __init__(self, latent=256):
        super().__init__()
        self.encoder = nn.Sequential(down(3, 64), down(64, 128), down(128, 256), down(256, 512), nn.Flatten())
        self.mean, self.logvar = nn.Linear(512 * 64, latent), nn.Linear(512 * 64, latent)
        self.expand = nn.Linear(latent, 512 * 64)
        self.decoder = nn.Sequential(up(512, 256), up(256, 128), up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1),
                                     nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(self.expand(z).view(-1, 512, 8, 8)), mean, logvar


torch.manual_seed(15)
model = VAE().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
for step in range(12):
    x = torch.rand(128 if step % 5 else 72, 3, 128, 128, device="cuda")
    y, mean, logvar = model(x)
    loss = F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    samples = model.decoder(model.expand(torch.randn(200, 256, device="cuda")).view(-1, 512, 8, 8))
print("loss", loss.item(), tuple(samples.shape))
