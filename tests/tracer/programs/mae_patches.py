"""A masked autoencoder: three of four patches dropped by sorted noise, a deep encoder on the rest, a light decoder, float16 with accumulated gradients, then a linear probe."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(205)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.one(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.two(x))


class Masked(nn.Module):
    def __init__(self, size=160, patch=16, width=512, deep=8, narrow=256, light=3):
        super().__init__()
        self.patch, n = patch, (size // patch) ** 2
        self.embed, self.cls = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.zeros(1, 1, width))
        self.register_buffer("place", torch.randn(1, n + 1, width) * 0.02)
        self.register_buffer("place2", torch.randn(1, n + 1, narrow) * 0.02)
        self.encoder, self.norm = nn.Sequential(*[Block(width, 8) for _ in range(deep)]), nn.LayerNorm(width)
        self.enter, self.mask = nn.Linear(width, narrow), nn.Parameter(torch.zeros(1, 1, narrow))
        self.decoder, self.norm2, self.pixels = nn.Sequential(*[Block(narrow, 8) for _ in range(light)]), nn.LayerNorm(narrow), nn.Linear(narrow, patch * patch * 3)

    def encode(self, images, ratio):
        x = self.embed(images).flatten(2).transpose(1, 2) + self.place[:, 1:]
        b, n, c = x.shape
        keep = int(n * (1 - ratio))
        order = torch.rand(b, n, device=x.device).argsort(1)
        back = order.argsort(1)
        x = x.gather(1, order[:, :keep, None].expand(-1, -1, c))
        mask = torch.ones(b, n, device=x.device)
        mask[:, :keep] = 0
        x = torch.cat([(self.cls + self.place[:, :1]).expand(b, -1, -1), x], 1)
        return self.norm(self.encoder(x)), mask.gather(1, back), back

    def forward(self, images):
        x, mask, back = self.encode(images, 0.75)
        x = self.enter(x)
        missing = self.mask.expand(len(x), back.shape[1] + 1 - x.shape[1], -1)
        y = torch.cat([x[:, 1:], missing.to(x.dtype)], 1).gather(1, back[..., None].expand(-1, -1, x.shape[-1]))
        y = self.pixels(self.norm2(self.decoder(torch.cat([x[:, :1], y], 1) + self.place2)))[:, 1:]
        p = self.patch
        target = images.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6).sqrt()
        return (((y - target) ** 2).mean(-1) * mask).sum() / mask.sum()


model = Masked().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95), weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for step in range(6):
    for part in range(3):
        images = torch.randn(48, 3, 160, 160, pin_memory=True).cuda(non_blocking=True)
        if step % 2:
            images = images.flip(-1)
        with torch.autocast("cuda", torch.float16):
            loss = model(images) / 3
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 3.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, loss.item())
probe = nn.Sequential(nn.BatchNorm1d(512, affine=False), nn.Linear(512, 1000)).cuda()
second = torch.optim.SGD(probe.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for step in range(3):
    images, labels = torch.randn(96, 3, 160, 160).cuda(), torch.randint(0, 1000, (96,)).cuda()
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        features = model.encode(images, 0.0)[0][:, 1:].mean(1)
    loss = F.cross_entropy(probe(features.float()), labels, label_smoothing=0.1)
    second.zero_grad()
    loss.backward()
    second.step()
    print(step, loss.item())
