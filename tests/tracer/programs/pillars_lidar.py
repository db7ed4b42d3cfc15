"""Boxes in clouds of a lidar: points into pillars of a fixed size, features by a small net and a maximum, scattered to a picture from above, a 2D network of three scales, focal loss, AdamW with a cycle."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(405)
GRID, POINTS, PILLARS = 256, 24, 6000


def stage(c, o, count):
    layers = [nn.Conv2d(c, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o, 1e-3, 0.01), nn.ReLU(True)]
    for _ in range(count):
        layers += [nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o, 1e-3, 0.01), nn.ReLU(True)]
    return nn.Sequential(*layers)


class Pillars(nn.Module):
    def __init__(self, anchors=6):
        super().__init__()
        self.points = nn.Sequential(nn.Linear(9, 64, bias=False), nn.BatchNorm1d(64, 1e-3, 0.01), nn.ReLU(True))
        self.stages = nn.ModuleList([stage(64, 64, 2), stage(64, 128, 3), stage(128, 256, 3)])
        self.up = nn.ModuleList(nn.Sequential(nn.ConvTranspose2d(c, 128, s, s, bias=False), nn.BatchNorm2d(128), nn.ReLU(True)) for c, s in ((64, 1), (128, 2), (256, 4)))
        self.kind, self.box, self.way = nn.Conv2d(384, anchors, 1), nn.Conv2d(384, 7 * anchors, 1), nn.Conv2d(384, 2 * anchors, 1)

    def forward(self, features, count, place, batch):
        p, n, f = features.shape
        live = torch.arange(n, device=features.device)[None] < count[:, None]
        x = self.points((features * live[..., None]).view(p * n, f)).view(p, n, -1).amax(1)
        canvas = torch.zeros(batch, GRID * GRID, 64, device=x.device, dtype=x.dtype)
        canvas[place[:, 0], place[:, 1] * GRID + place[:, 2]] = x
        y, found = canvas.transpose(1, 2).reshape(batch, 64, GRID, GRID), []
        for s, u in zip(self.stages, self.up):
            y = s(y)
            found.append(u(y))
        y = torch.cat(found, 1)
        return self.kind(y), self.box(y), self.way(y)


def cloud(batch):
    place = torch.stack([torch.arange(batch, device="cuda").repeat_interleave(PILLARS), torch.randint(0, GRID, (batch * PILLARS,), device="cuda"), torch.randint(0, GRID, (batch * PILLARS,), device="cuda")], 1)
    return torch.randn(batch * PILLARS, POINTS, 9, device="cuda"), torch.randint(1, POINTS + 1, (batch * PILLARS,), device="cuda"), place


model = Pillars().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.95, 0.99), weight_decay=0.01)
cycle = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 10)
for step in range(5):
    batch = 3 if step < 4 else 2
    kind, box, way = model(*cloud(batch), batch)
    positive = torch.zeros_like(kind)
    positive[:, :, ::19, ::21] = 1
    p = kind.sigmoid()
    focal = F.binary_cross_entropy_with_logits(kind, positive, reduction="none") * ((1 - p) * positive + p * (1 - positive)).pow(2)
    hot = positive.view(batch, 6, 1, *kind.shape[2:])
    boxes = box.view(batch, 6, 7, *box.shape[2:])
    loss = focal.sum() / positive.sum() + 2 * (F.smooth_l1_loss(boxes, torch.zeros_like(boxes), reduction="none") * hot).sum() / positive.sum()
    loss = loss + 0.2 * F.cross_entropy(way.view(batch, 6, 2, -1).transpose(1, 2), torch.zeros(batch, 6, way.shape[2] * way.shape[3], dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10)
    optimizer.step()
    cycle.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    kind, box, way = model(*cloud(1), 1)
    score, index = kind.sigmoid().flatten().topk(500)
    print(score.mean().item(), box.view(6, 7, -1).permute(0, 2, 1).reshape(-1, 7)[index].shape)
