"""An image autoencoder with attention in the middle: trained on small images, then a large one encoded and decoded in tiles."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(74)


class Res(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.net = nn.Sequential(nn.GroupNorm(32, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(32, outside), nn.SiLU(), nn.Conv2d(outside, outside, 3, padding=1))
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.net(x)


class Middle(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(32, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, c, h * w).transpose(2, 3).unbind(1)
        y = F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)).squeeze(1)
        return x + self.out(y.transpose(1, 2).view(b, c, h, w))


widths = (64, 128, 256)
encoder = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), Res(64, 64), nn.Conv2d(64, 64, 3, 2, 1), Res(64, 128), nn.Conv2d(128, 128, 3, 2, 1), Res(128, 256), nn.Conv2d(256, 256, 3, 2, 1),
                        Res(256, 256), Middle(256), nn.GroupNorm(32, 256), nn.SiLU(), nn.Conv2d(256, 8, 3, padding=1)).cuda()
decoder = nn.Sequential(nn.Conv2d(4, 256, 3, padding=1), Middle(256), Res(256, 256), nn.Upsample(scale_factor=2), nn.Conv2d(256, 256, 3, padding=1), Res(256, 128), nn.Upsample(scale_factor=2),
                        nn.Conv2d(128, 128, 3, padding=1), Res(128, 64), nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, padding=1), nn.GroupNorm(32, 64), nn.SiLU(), nn.Conv2d(64, 3, 3, padding=1)).cuda()
parameters = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
for step in range(5):
    image = torch.rand(6, 3, 192, 192).cuda() * 2 - 1
    mean, logvar = encoder(image).chunk(2, dim=1)
    latent = mean + (0.5 * logvar.clamp(-30, 20)).exp() * torch.randn_like(mean)
    again = decoder(latent)
    loss = F.l1_loss(again, image) + 1e-6 * 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum(dim=[1, 2, 3]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())


def blend(a, b, extent, dim):
    size = min(a.shape[dim], b.shape[dim], extent)
    ramp = torch.linspace(0, 1, size, device=b.device).view([-1, 1] if dim == 2 else [1, -1])
    front = b.narrow(dim, 0, size)
    front.copy_(a.narrow(dim, a.shape[dim] - size, size) * (1 - ramp) + front * ramp)
    return b


with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    picture = torch.rand(1, 3, 1024, 1280, device="cuda") * 2 - 1
    latent = torch.cat([torch.cat([encoder(picture[:, :, y : y + 256, x : x + 256]).chunk(2, 1)[0] for x in range(0, 1280, 256)], dim=3) for y in range(0, 1024, 256)], dim=2)
    rows = [[decoder(latent[:, :, y : y + 48, x : x + 48]) for x in range(0, 160, 36)] for y in range(0, 128, 36)]
    lines = []
    for i, row in enumerate(rows):
        line = []
        for j, tile in enumerate(row):
            if i:
                tile = blend(rows[i - 1][j], tile, 96, 2)
            if j:
                tile = blend(row[j - 1], tile, 96, 3)
            line.append(tile[:, :, :288, :288])
        lines.append(torch.cat(line, dim=3))
    print(tuple(torch.cat(lines, dim=2)[:, :, :1024, :1280].shape))
