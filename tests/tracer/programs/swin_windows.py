"""A Swin transformer written out: windows that shift by roll, relative biases, merged patches, bfloat16, fused AdamW."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(101)


def windows(x, w):
    b, h, wd, c = x.shape
    return x.view(b, h // w, w, wd // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)


def unwindow(x, w, h, wd):
    b = x.shape[0] // (h * wd // w // w)
    return x.view(b, h // w, wd // w, w, w, -1).permute(0, 1, 3, 2, 4, 5).reshape(b, h, wd, -1)


class Block(nn.Module):
    def __init__(self, dim, heads, size, window=7, shift=0):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.table, std=0.02)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        rel = (grid[:, :, None] - grid[:, None]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", rel[..., 0] * (2 * window - 1) + rel[..., 1])
        mask = None
        if shift:
            regions = torch.zeros(1, size, size, 1)
            cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
            for i, a in enumerate(cuts):
                for j, b in enumerate(cuts):
                    regions[:, a, b] = 3 * i + j
            r = windows(regions, window).squeeze(-1)
            mask = (r[:, None] - r[:, :, None]).ne(0).float() * -100.0
        self.register_buffer("mask", mask)

    def attention(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        a = a + self.table[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1).unsqueeze(0)
        if self.mask is not None:
            m = self.mask.shape[0]
            a = (a.view(n // m, m, self.heads, t, t) + self.mask[None, :, None]).view(n, self.heads, t, t)
        return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))

    def forward(self, x):
        h, w = x.shape[1:3]
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = unwindow(self.attention(windows(y, self.window)), self.window, h, w)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Merge(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduce(self.norm(x))


class Swin(nn.Module):
    def __init__(self, dim=96, depths=(2, 2, 4, 2), heads=(3, 6, 12, 24), classes=1000):
        super().__init__()
        self.patch, self.norm0 = nn.Conv2d(3, dim, 4, 4), nn.LayerNorm(dim)
        layers, size = [], 56
        for i, (d, h) in enumerate(zip(depths, heads)):
            for j in range(d):
                layers.append(Block(dim << i, h, size, shift=3 if j % 2 and size > 7 else 0))
            if i < 3:
                layers.append(Merge(dim << i))
                size //= 2
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(dim << 3), nn.Linear(dim << 3, classes)

    def forward(self, x):
        x = self.norm0(self.patch(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.layers(x)).mean((1, 2)))


model = Swin().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(7):
    n = 48 if step != 5 else 31
    images, labels = torch.randn(n, 3, 224, 224), torch.randint(0, 1000, (n,))
    images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
