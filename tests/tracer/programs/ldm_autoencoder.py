"""The autoencoder of a latent diffusion model: residual blocks with group norm, attention in the middle, a KL term, features of a frozen VGG as a loss, a critic that starts later, two Adams."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(1114)


class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(16, i), nn.GroupNorm(16, o)
        self.a, self.b = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
        self.short = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return self.short(x) + self.b(F.silu(self.n2(self.a(F.silu(self.n1(x))))))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(16, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        y = torch.softmax(q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, -1) @ v
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


W = 48
encoder = nn.Sequential(nn.Conv2d(3, W, 3, padding=1), Block(W, W), nn.Conv2d(W, W, 3, 2, 1), Block(W, 2 * W), nn.Conv2d(2 * W, 2 * W, 3, 2, 1), Block(2 * W, 4 * W), Attention(4 * W), nn.GroupNorm(16, 4 * W), nn.SiLU(), nn.Conv2d(4 * W, 8, 3, padding=1)).cuda()
decoder = nn.Sequential(nn.Conv2d(4, 4 * W, 3, padding=1), Attention(4 * W), Block(4 * W, 4 * W), nn.Upsample(scale_factor=2), nn.Conv2d(4 * W, 2 * W, 3, padding=1), Block(2 * W, 2 * W), nn.Upsample(scale_factor=2), nn.Conv2d(2 * W, W, 3, padding=1), Block(W, W), nn.GroupNorm(16, W), nn.SiLU(), nn.Conv2d(W, 3, 3, padding=1)).cuda()
critic = nn.Sequential(nn.Conv2d(3, 48, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(48, 96, 4, 2, 1), nn.InstanceNorm2d(96), nn.LeakyReLU(0.2), nn.Conv2d(96, 1, 4, 1, 1)).cuda()
vgg = torchvision.models.vgg16(weights=None).features[:16].cuda().eval().requires_grad_(False)
oa = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4, (0.5, 0.9))
oc = torch.optim.Adam(critic.parameters(), 1e-4, (0.5, 0.9))
for step in range(8):
    x = torch.rand(12, 3, 128, 128).mul(2).sub(1).cuda()
    mean, spread = encoder(x).chunk(2, 1)
    spread = spread.clamp(-30, 20)
    made = decoder(mean + torch.exp(0.5 * spread) * torch.randn_like(mean))
    kl = 0.5 * (mean.pow(2) + spread.exp() - 1 - spread).sum((1, 2, 3)).mean()
    loss = (x - made).abs().mean() + 0.1 * F.mse_loss(vgg(made), vgg(x)) + 1e-6 * kl
    if step >= 3:
        loss = loss - 0.05 * critic(made).mean()
    oa.zero_grad()
    loss.backward()
    oa.step()
    if step >= 3:
        lost = F.relu(1 - critic(x)).mean() + F.relu(1 + critic(made.detach())).mean()
        oc.zero_grad()
        lost.backward()
        oc.step()
    print(step, loss.item())
with torch.no_grad():
    print(decoder(torch.randn(20, 4, 32, 32, device="cuda")).std().item())
