"""A signed distance field and colours from hashed grids of many resolutions: primes and xor, eight corners, small fused-like networks in half precision, occupancy that skips empty space, Eikonal loss."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(306)


class Hashed(nn.Module):
    def __init__(self, levels=12, size=2**18, features=2, low=16, high=1024):
        super().__init__()
        grow = (high / low) ** (1 / (levels - 1))
        self.sides = [int(low * grow**i) for i in range(levels)]
        self.size, self.table = size, nn.Parameter(torch.rand(levels, size, features) * 2e-4 - 1e-4)
        self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]))
        self.register_buffer("corners", torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)]))

    def forward(self, x):
        found = []
        for level, side in enumerate(self.sides):
            scaled = x * side
            low = scaled.floor().long()
            part = (scaled - low)[:, None]
            at = low[:, None] + self.corners
            hashed = at * self.primes
            index = (hashed[..., 0] ^ hashed[..., 1] ^ hashed[..., 2]) % self.size
            weight = torch.where(self.corners == 1, part, 1 - part).prod(-1)
            found.append((self.table[level][index] * weight[..., None]).sum(1))
        return torch.cat(found, -1)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = Hashed()
        self.density = nn.Sequential(nn.Linear(24, 64), nn.Softplus(beta=100), nn.Linear(64, 16))
        self.colour = nn.Sequential(nn.Linear(16 + 16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x, direction):
        with torch.autocast("cuda", torch.float16):
            h = self.density(self.grid(x))
        code = torch.cat([torch.sin(2.0**i * direction) for i in range(5)] + [direction[..., :1]], -1)
        with torch.autocast("cuda", torch.float16):
            return h[..., 0].float(), torch.sigmoid(self.colour(torch.cat([h, code], -1))).float()


field = Field().cuda()
optimizer = torch.optim.Adam([{"params": field.grid.parameters(), "lr": 1e-2, "eps": 1e-15}, {"params": field.density.parameters()}, {"params": field.colour.parameters()}], lr=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
occupied = torch.ones(64, 64, 64, dtype=torch.bool, device="cuda")
occupied[:, :, 40:] = False
for step in range(6):
    rays, samples = 2048, 64
    origin, direction = torch.rand(rays, 3, device="cuda"), F.normalize(torch.randn(rays, 3, device="cuda"), dim=-1)
    t = torch.linspace(0.02, 0.9, samples, device="cuda")[None] + torch.rand(rays, samples, device="cuda") * 0.01
    points = (origin[:, None] + direction[:, None] * t[..., None]).clamp(0, 0.999)
    cell = (points * 64).long()
    inside = occupied[cell[..., 0], cell[..., 1], cell[..., 2]]
    x = points[inside].requires_grad_(step % 2 == 1)
    sigma, rgb = field(x, direction[:, None].expand_as(points)[inside])
    loss = 0
    if step % 2:
        grad, = torch.autograd.grad(sigma.sum(), x, create_graph=True)
        loss = 0.1 * (grad.norm(dim=-1) - 1).pow(2).mean()
    dense = torch.zeros(rays, samples, device="cuda").masked_scatter(inside, F.softplus(sigma))
    colours = torch.zeros(rays, samples, 3, device="cuda")
    colours[inside] = rgb
    alpha = 1 - torch.exp(-dense * 0.014)
    weight = alpha * torch.cumprod(torch.cat([torch.ones(rays, 1, device="cuda"), 1 - alpha[:, :-1] + 1e-10], -1), -1)
    loss = loss + F.huber_loss((weight[..., None] * colours).sum(1), torch.rand(rays, 3, device="cuda"))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
