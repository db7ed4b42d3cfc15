"""A surface from points as a signed distance (geometric start, softplus, a skip): gradients by autograd inside the loss, so that derivatives are taken twice, then a grid in pieces and its normals."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1216)


class Surface(nn.Module):
    def __init__(self, width=512, depth=8, skip=4, frequencies=6):
        super().__init__()
        self.register_buffer("f", 2.0 ** torch.arange(frequencies) * math.pi)
        self.first = 3 + 6 * frequencies
        sizes = [self.first] + [width] * (depth - 1) + [257]
        self.skip, self.layers = skip, nn.ModuleList()
        for i in range(depth):
            out = sizes[i + 1] - (self.first if i + 1 == skip else 0)
            layer = nn.Linear(sizes[i], out)
            nn.init.normal_(layer.weight, 0.0, math.sqrt(2 / out))
            nn.init.zeros_(layer.bias)
            self.layers.append(nn.utils.parametrizations.weight_norm(layer))

    def forward(self, x):
        p = (x[..., None] * self.f).flatten(1)
        e = h = torch.cat([x, p.sin(), p.cos()], 1)
        for i, layer in enumerate(self.layers):
            if i == self.skip:
                h = torch.cat([h, e], 1) / math.sqrt(2)
            h = layer(h)
            if i + 1 < len(self.layers):
                h = F.softplus(h, beta=100)
        return h[:, :1], h[:, 1:]


net = Surface().cuda()
optimizer = torch.optim.Adam(net.parameters(), 5e-4)
rate = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 7], 0.5)
cloud = F.normalize(torch.randn(60000, 3), dim=1).cuda() * 0.6
for step in range(9):
    on = cloud[torch.randint(0, 60000, (8192,), device="cuda")]
    near = on + 0.05 * torch.randn_like(on)
    off = torch.rand(4096, 3, device="cuda") * 2 - 1
    x = torch.cat([on, near, off]).requires_grad_(True)
    d, _ = net(x)
    g, = torch.autograd.grad(d, x, torch.ones_like(d), create_graph=True)
    eikonal = (g.norm(dim=1) - 1).square().mean()
    normal = (1 - F.cosine_similarity(g[:8192], on / 0.6)).mean()
    loss = d[:8192].abs().mean() + 0.1 * eikonal + 0.05 * normal + 0.1 * torch.exp(-100 * d[16384:].abs()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rate.step()
    print(step, loss.item())
line = torch.linspace(-1, 1, 96, device="cuda")
grid = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1).reshape(-1, 3)
with torch.no_grad():
    field = torch.cat([net(piece)[0].squeeze(1) for piece in grid.split(65536)]).view(96, 96, 96)
edge = F.max_pool3d(field[None, None], 3, 1, 1)[0, 0] - field
x = cloud[:16384].clone().requires_grad_(True)
d, _ = net(x)
g, = torch.autograd.grad(d.sum(), x)
print(edge.mean().item(), F.normalize(g, dim=1).mean().item())
