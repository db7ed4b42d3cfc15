"""Splats that grow: a picture of Gaussians drawn tile by tile, points cloned and pruned, the optimizer's state cut and joined."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(110)
SIZE, TILE = 256, 32


def parameters(n):
    return {"where": nn.Parameter(torch.rand(n, 2, device="cuda") * SIZE), "scale": nn.Parameter(torch.full((n, 2), 0.7, device="cuda")),
            "turn": nn.Parameter(torch.zeros(n, 1, device="cuda")), "alpha": nn.Parameter(torch.zeros(n, 1, device="cuda")),
            "color": nn.Parameter(torch.rand(n, 27, device="cuda"))}


def draw(p):
    s, a = p["scale"].exp(), p["turn"]
    r = torch.stack([torch.cat([a.cos(), -a.sin()], 1), torch.cat([a.sin(), a.cos()], 1)], 1)
    m = r * s.unsqueeze(1)
    inverse = torch.linalg.inv(m @ m.transpose(1, 2) + 0.1 * torch.eye(2, device="cuda"))
    color, alpha = p["color"].view(-1, 9, 3).mean(1).sigmoid(), p["alpha"].sigmoid()
    order = p["scale"].detach().sum(1).argsort(descending=True)
    grid = torch.stack(torch.meshgrid(torch.arange(TILE, device="cuda"), torch.arange(TILE, device="cuda"), indexing="xy"), -1).view(-1, 2) + 0.5
    rows = []
    for y in range(0, SIZE, TILE):
        row = []
        for x in range(0, SIZE, TILE):
            lo = torch.tensor([x, y], device="cuda", dtype=torch.float32)
            near = order[torch.arange(y // TILE * 8 + x // TILE, len(order), 64, device="cuda")]
            d = (grid + lo).unsqueeze(1) - p["where"][near].unsqueeze(0)
            power = -0.5 * torch.einsum("pni,nij,pnj->pn", d, inverse[near], d)
            w = (alpha[near].t() * power.exp()).clamp(max=0.99)
            through = torch.cumprod(torch.cat([torch.ones_like(w[:, :1]), 1 - w], 1), 1)[:, :-1]
            row.append(((w * through) @ color[near]).view(TILE, TILE, 3))
        rows.append(torch.cat(row, 1))
    return torch.cat(rows, 0)


def replace(optimizer, p, change, new=None):
    """Parameters and both moments of Adam after points were removed (a mask) or added (new rows)."""
    for group in optimizer.param_groups:
        old, name = group["params"][0], group["name"]
        state = optimizer.state.pop(old, {})
        value = old[change] if new is None else torch.cat([old, new[name]])
        for key in ("exp_avg", "exp_avg_sq"):
            if key in state:
                state[key] = state[key][change] if new is None else torch.cat([state[key], torch.zeros_like(new[name])])
        group["params"][0] = p[name] = nn.Parameter(value.detach().requires_grad_(True))
        optimizer.state[p[name]] = state


p = parameters(40000)
optimizer = torch.optim.Adam([{"params": [v], "name": k, "lr": 1e-2} for k, v in p.items()], eps=1e-15)
target = torch.rand(SIZE, SIZE, 3).cuda()
window = torch.ones(3, 1, 11, 11, device="cuda") / 121
for step in range(9):
    image = draw(p)
    x, y = image.permute(2, 0, 1).unsqueeze(0), target.permute(2, 0, 1).unsqueeze(0)
    mx, my = F.conv2d(x, window, padding=5, groups=3), F.conv2d(y, window, padding=5, groups=3)
    sx, sy, sxy = [F.conv2d(a * b, window, padding=5, groups=3) for a, b in ((x, x), (y, y), (x, y))]
    ssim = ((2 * mx * my + 1e-4) * (2 * (sxy - mx * my) + 9e-4)) / ((mx**2 + my**2 + 1e-4) * (sx - mx**2 + sy - my**2 + 9e-4))
    loss = 0.8 * (image - target).abs().mean() + 0.2 * (1 - ssim.mean())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        if step % 3 == 1:
            n = len(p["where"]) // 5
            chosen = torch.randperm(len(p["where"]))[:n].cuda()
            replace(optimizer, p, None, {k: v[chosen] + 0.01 for k, v in p.items()})
        if step == 5:
            keep = torch.rand(len(p["where"])) < 0.9
            replace(optimizer, p, keep.cuda())
            torch.cuda.empty_cache()
    print(step, len(p["where"]), loss.item())
