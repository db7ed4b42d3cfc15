"""A transformer for diffusion: classes dropped at random, weights averaged by foreach, then sampling with guidance, resumed twice."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(85)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.modulate = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, c):
        s1, k1, g1, s2, k2, g2 = self.modulate(c).unsqueeze(1).chunk(6, dim=-1)
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x) * (1 + k1) + s1).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + g1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w))
        return x + g2 * self.mlp(self.norm2(x) * (1 + k2) + s2)


class Net(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.patch, self.label = nn.Conv2d(4, width, 2, 2), nn.Embedding(101, width)
        self.place = nn.Parameter(torch.zeros(1, 256, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks, self.out = nn.ModuleList([Block(width, 8) for _ in range(9)]), nn.Linear(width, 16)

    def forward(self, x, t, y):
        angle = t[:, None].float() * torch.exp(torch.arange(128, device=x.device) * -0.072)
        c = self.time(torch.cat([angle.cos(), angle.sin()], -1)) + self.label(y)
        h = self.patch(x).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            h = block(h, c)
        return self.out(h).view(-1, 16, 16, 2, 2, 4).permute(0, 5, 1, 3, 2, 4).reshape(-1, 4, 32, 32)


net = Net().cuda()
slow = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0)
alpha = torch.linspace(1e-4, 0.02, 1000, device="cuda").neg().add(1).cumprod(0)
for step in range(6):
    x, y = torch.randn(32, 4, 32, 32).cuda(), torch.randint(0, 100, (32,)).cuda()
    y = torch.where(torch.rand(32, device="cuda") < 0.1, 100, y)
    t, noise = torch.randint(0, 1000, (32,), device="cuda"), torch.randn_like(x)
    a = alpha[t].view(-1, 1, 1, 1)
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t, y).float(), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch._foreach_mul_(list(slow.parameters()), 0.9999)
    torch._foreach_add_(list(slow.parameters()), list(net.parameters()), alpha=1e-4)
    print(step, loss.item())
slow.eval()
with torch.inference_mode():
    for count in (16, 40):
        x, y = torch.randn(count, 4, 32, 32, device="cuda"), torch.randint(0, 100, (count,), device="cuda")
        for i in range(999, 0, -111):
            both = slow(torch.cat([x, x]), torch.full((2 * count,), i, device="cuda"), torch.cat([y, torch.full_like(y, 100)]))
            guided, plain = both.chunk(2)
            noise = plain + 4.0 * (guided - plain)
            clean = ((x - (1 - alpha[i]).sqrt() * noise) / alpha[i].sqrt()).clamp(-3, 3)
            x = alpha[i - 111].sqrt() * clean + (1 - alpha[i - 111]).sqrt() * noise if i > 111 else clean
        print(count, x.std().item())
