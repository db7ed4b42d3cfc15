"""Pictures from text by rectified flow, as Stable Diffusion 3: two streams with weights of their own meet in one attention, every second block is computed again, bfloat16, EMA, then samples with guidance."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1315)
W, HEADS = 640, 10


class Stream(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.qkv, self.out = nn.Linear(W, 6 * W), nn.Linear(W, 3 * W), nn.Linear(W, W)
        self.q, self.k = nn.RMSNorm(W // HEADS), nn.RMSNorm(W // HEADS)
        self.n1, self.n2 = nn.LayerNorm(W, elementwise_affine=False), nn.LayerNorm(W, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(W, 4 * W), nn.GELU(approximate="tanh"), nn.Linear(4 * W, W))

    def before(self, x, c):
        m = self.shift(F.silu(c))[:, None].chunk(6, 2)
        q, k, v = self.qkv(self.n1(x) * (1 + m[1]) + m[0]).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.q(q), self.k(k), v, m

    def after(self, x, y, m):
        x = x + m[2] * self.out(y.transpose(1, 2).flatten(2))
        return x + m[5] * self.mlp(self.n2(x) * (1 + m[4]) + m[3])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = Stream(), Stream()

    def forward(self, x, t, c):
        (qx, kx, vx, mx), (qt, kt, vt, mt) = self.image.before(x, c), self.text.before(t, c)
        y = F.scaled_dot_product_attention(torch.cat([qt, qx], 2), torch.cat([kt, kx], 2), torch.cat([vt, vx], 2))
        n = t.shape[1]
        return self.image.after(x, y[:, :, n:], mx), self.text.after(t, y[:, :, :n], mt)


class Net(nn.Module):
    def __init__(self, depth=8):
        super().__init__()
        self.patch, self.words = nn.Conv2d(16, W, 2, 2), nn.Linear(768, W)
        self.time = nn.Sequential(nn.Linear(256, W), nn.SiLU(), nn.Linear(W, W))
        self.pooled = nn.Sequential(nn.Linear(768, W), nn.SiLU(), nn.Linear(W, W))
        self.place = nn.Parameter(torch.randn(1, 1024, W) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.end, self.last = nn.LayerNorm(W, elementwise_affine=False), nn.Linear(W, 64)

    def forward(self, x, t, words):
        f = torch.exp(-torch.arange(128, device=x.device) * 0.07)
        a = t[:, None] * 1000 * f
        c = self.time(torch.cat([a.cos(), a.sin()], 1)) + self.pooled(words.mean(1))
        h, s = self.patch(x).flatten(2).transpose(1, 2), self.words(words)
        h = h + self.place[:, :h.shape[1]]
        for i, block in enumerate(self.blocks):
            h, s = checkpoint(block, h, s, c, use_reentrant=False) if i % 2 and self.training else block(h, s, c)
        n = x.shape[-1] // 2
        return F.pixel_shuffle(self.last(self.end(h)).transpose(1, 2).unflatten(2, (n, n)), 2)


net = Net().cuda()
average = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(net.parameters(), 1e-4, weight_decay=0.01, fused=True)
for step in range(6):
    side = (48, 64, 56)[step % 3]
    x, words = torch.randn(8, 16, side, side).cuda(), torch.randn(8, 77, 768).cuda()
    words[torch.arange(8) % 8 == 0] = 0
    t = torch.sigmoid(torch.randn(8, device="cuda"))
    noise = torch.randn_like(x)
    mixed = (1 - t.view(-1, 1, 1, 1)) * x + t.view(-1, 1, 1, 1) * noise
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.mse_loss(net(mixed, t, words).float(), noise - x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 0.001)
    print(step, loss.item())
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    x, words = torch.randn(4, 16, 64, 64, device="cuda"), torch.randn(4, 77, 768, device="cuda")
    both = torch.cat([words, torch.zeros_like(words)])
    for t in torch.linspace(1, 0.1, 10).tolist():
        a, b = average(torch.cat([x, x]), torch.full((8,), t, device="cuda"), both).chunk(2)
        x = x - 0.1 * (b + 5.0 * (a - b)).float()
    print(x.std().item())
