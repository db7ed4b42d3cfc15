"""A radiance field: rays in chunks, positions encoded, samples drawn again where the first ones were dense."""
import torch
import torch.nn.functional as F
from torch import nn


def encode(x, bands):
    scales = 2.0 ** torch.arange(bands, device=x.device)
    angles = (x[..., None, :] * scales[:, None]).flatten(-2)
    return torch.cat([x, angles.sin(), angles.cos()], dim=-1)


class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(63, width), nn.ReLU(), *[m for _ in range(3) for m in (nn.Linear(width, width), nn.ReLU())])
        self.second = nn.Sequential(nn.Linear(width + 63, width), nn.ReLU(), nn.Linear(width, width + 1))
        self.color = nn.Sequential(nn.Linear(width + 27, 128), nn.ReLU(), nn.Linear(128, 3))

    def forward(self, points, directions):
        p = encode(points, 10)
        h = self.second(torch.cat([self.first(p), p], dim=-1))
        d = encode(directions, 4)[:, None].expand(-1, points.shape[1], -1)
        return F.softplus(h[..., :1]).squeeze(-1), torch.sigmoid(self.color(torch.cat([h[..., 1:], d], dim=-1)))


def render(field, origins, directions, depths):
    density, color = field(origins[:, None] + directions[:, None] * depths[..., None], directions)
    steps = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 1e10)], dim=1)
    alpha = 1 - torch.exp(-density * steps)
    light = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], dim=1), dim=1)[:, :-1]
    weights = alpha * light
    return (weights[..., None] * color).sum(1), weights


def again(depths, weights, count):
    middle = (depths[:, 1:] + depths[:, :-1]) / 2
    pdf = weights[:, 1:-1] + 1e-5
    cdf = torch.cumsum(pdf / pdf.sum(1, keepdim=True), dim=1)
    cdf = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], dim=1)
    u = torch.rand(len(depths), count, device=depths.device)
    index = torch.searchsorted(cdf, u, right=True)
    low, high = (index - 1).clamp(min=0), index.clamp(max=cdf.shape[1] - 1)
    c = torch.gather(cdf, 1, low), torch.gather(cdf, 1, high)
    b = torch.gather(middle, 1, low), torch.gather(middle, 1, high)
    gap = torch.where(c[1] - c[0] < 1e-5, torch.ones_like(u), c[1] - c[0])
    new = b[0] + (u - c[0]) / gap * (b[1] - b[0])
    return torch.sort(torch.cat([depths, new.detach()], dim=1), dim=1).values


def rays(field, fine, origins, directions):
    depths = torch.linspace(2, 6, 64, device="cuda").expand(len(origins), 64)
    depths = depths + torch.rand_like(depths) * (4 / 64)
    coarse, weights = render(field, origins, directions, depths)
    return coarse, render(fine, origins, directions, again(depths, weights.detach(), 96))[0]


torch.manual_seed(46)
field, fine = Field().cuda(), Field().cuda()
optimizer = torch.optim.Adam([*field.parameters(), *fine.parameters()], lr=5e-4)
images = torch.rand(10, 100, 100, 3, device="cuda")
origins = torch.randn(10, 100, 100, 3, device="cuda")
directions = F.normalize(torch.randn(10, 100, 100, 3, device="cuda"), dim=-1)
for step in range(8):
    pick = torch.randint(0, 10 * 100 * 100, (1536,), device="cuda")
    o, d, target = (t.view(-1, 3)[pick] for t in (origins, directions, images))
    coarse, out = rays(field, fine, o, d)
    loss = F.mse_loss(coarse, target) + F.mse_loss(out, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
with torch.no_grad():
    o, d = origins[0].view(-1, 3), directions[0].view(-1, 3)
    picture = torch.cat([rays(field, fine, a, b)[1] for a, b in zip(o.split(4096), d.split(4096))])
print(tuple(picture.view(100, 100, 3).cpu().shape))
