"""Samples images with a text-conditioned U-Net in half precision: classifier-free guidance, DDIM, a decoder at the end."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, a), nn.Conv2d(a, b, 3, padding=1)
        self.time = nn.Linear(time, b)
        self.norm2, self.conv2 = nn.GroupNorm(32, b), nn.Conv2d(b, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Cross(nn.Module):
    def __init__(self, c, text, heads=8):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(c), heads
        self.q, self.kv, self.out = nn.Linear(c, c), nn.Linear(text, 2 * c), nn.Linear(c, c)

    def forward(self, x, text):
        b, c, h, w = x.shape
        tokens = x.flatten(2).transpose(1, 2)
        q = self.q(self.norm(tokens)).view(b, h * w, self.heads, -1).transpose(1, 2)
        k, v = self.kv(text).view(b, text.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, h * w, c)
        return (tokens + self.out(y)).transpose(1, 2).view(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, c=192, text=512, time=768):
        super().__init__()
        self.c = c
        self.embed = nn.Sequential(nn.Linear(c, time), nn.SiLU(), nn.Linear(time, time))
        self.first, self.last = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.down = nn.ModuleList([Block(c, c, time), Block(c, 2 * c, time), Block(2 * c, 4 * c, time)])
        self.cross = nn.ModuleList([Cross(c, text), Cross(2 * c, text), Cross(4 * c, text)])
        self.mid = Block(4 * c, 4 * c, time)
        self.up = nn.ModuleList([Block(8 * c, 2 * c, time), Block(4 * c, c, time), Block(2 * c, c, time)])

    def forward(self, x, t, text):
        f = torch.exp(-math.log(10000) * torch.arange(self.c // 2, device=x.device) / (self.c // 2))
        t = t[:, None].float() * f[None]
        t = self.embed(torch.cat([t.cos(), t.sin()], dim=-1).to(x.dtype))
        x, skips = self.first(x), []
        for i, (block, cross) in enumerate(zip(self.down, self.cross)):
            x = cross(block(x, t), text)
            skips.append(x)
            x = F.avg_pool2d(x, 2) if i < 2 else x
        x = self.mid(x, t)
        for i, block in enumerate(self.up):
            x = F.interpolate(x, scale_factor=2.0, mode="nearest") if i > 0 else x
            x = block(torch.cat([x, skips.pop()], dim=1), t)
        return self.last(x)


@torch.inference_mode()
def sample(unet, decoder, cond, uncond, size, steps, scale):
    alphas = torch.linspace(0.9999, 0.005, 1000, device="cuda")
    x = torch.randn(cond.shape[0], 4, size, size, device="cuda", dtype=torch.half)
    text = torch.cat([uncond, cond])
    times = torch.linspace(999, 0, steps, device="cuda").long()
    for i, t in enumerate(times):
        both = unet(torch.cat([x, x]), t.expand(2 * len(x)), text)
        free, guided = both.chunk(2)
        noise = free + scale * (guided - free)
        now = alphas[t].half()
        after = alphas[times[i + 1]].half() if i + 1 < steps else torch.ones_like(now)
        clean = (x - (1 - now).sqrt() * noise) / now.sqrt()
        x = after.sqrt() * clean + (1 - after).sqrt() * noise
    images = torch.cat([decoder(z) for z in x.split(4)])
    return ((images.clamp(-1, 1) + 1) * 127.5).byte().cpu()


torch.manual_seed(22)
unet = UNet().half().cuda().eval()
decoder = nn.Sequential(nn.Conv2d(4, 256, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2),
                        nn.Conv2d(256, 128, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=4),
                        nn.Conv2d(128, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 3, 3, padding=1)).half().cuda()
for batch, size in ((8, 64), (16, 64), (4, 96), (8, 64)):
    words = torch.randn(batch, 77, 512, device="cuda", dtype=torch.half)
    images = sample(unet, decoder, words, torch.zeros_like(words), size, 6, 7.5)
    torch.cuda.synchronize()
    print(tuple(images.shape))
