"""A detector of one stage: cross-stage blocks in channels_last, another image size each few steps, float16, an average, then boxes by NMS."""
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(114)
torch.manual_seed(114)


def conv(c, o, k=1, s=1):
    return nn.Sequential(nn.Conv2d(c, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o, eps=1e-3, momentum=0.03), nn.SiLU(inplace=True))


class C2f(nn.Module):
    def __init__(self, c, o, n, add=True):
        super().__init__()
        self.enter, self.leave, self.add = conv(c, o), conv((2 + n) * o // 2, o), add
        self.blocks = nn.ModuleList(nn.Sequential(conv(o // 2, o // 2, 3), conv(o // 2, o // 2, 3)) for _ in range(n))

    def forward(self, x):
        y = list(self.enter(x).chunk(2, 1))
        for b in self.blocks:
            y.append(y[-1] + b(y[-1]) if self.add else b(y[-1]))
        return self.leave(torch.cat(y, 1))


class Pool(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enter, self.leave = conv(c, c // 2), conv(2 * c, c)

    def forward(self, x):
        y = [self.enter(x)]
        for _ in range(3):
            y.append(F.max_pool2d(y[-1], 5, 1, 2))
        return self.leave(torch.cat(y, 1))


class Yolo(nn.Module):
    def __init__(self, classes=80):
        super().__init__()
        self.s1 = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), C2f(64, 64, 1))
        self.s2 = nn.Sequential(conv(64, 128, 3, 2), C2f(128, 128, 2))
        self.s3 = nn.Sequential(conv(128, 256, 3, 2), C2f(256, 256, 2))
        self.s4 = nn.Sequential(conv(256, 512, 3, 2), C2f(512, 512, 1), Pool(512))
        self.u3, self.u2 = C2f(768, 256, 1, False), C2f(384, 128, 1, False)
        self.d2, self.d3 = conv(128, 128, 3, 2), conv(256, 256, 3, 2)
        self.e3, self.e4 = C2f(384, 256, 1, False), C2f(768, 512, 1, False)
        self.boxes = nn.ModuleList(nn.Sequential(conv(c, 64, 3), nn.Conv2d(64, 64, 1)) for c in (128, 256, 512))
        self.kinds = nn.ModuleList(nn.Sequential(conv(c, 128, 3), nn.Conv2d(128, classes, 1)) for c in (128, 256, 512))

    def forward(self, x):
        a = self.s2(self.s1(x))
        b = self.s3(a)
        c = self.s4(b)
        b = self.u3(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        a = self.u2(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1))
        b = self.e3(torch.cat([self.d2(a), b], 1))
        c = self.e4(torch.cat([self.d3(b), c], 1))
        box = torch.cat([m(f).flatten(2) for m, f in zip(self.boxes, (a, b, c))], 2)
        kind = torch.cat([m(f).flatten(2) for m, f in zip(self.kinds, (a, b, c))], 2)
        d = box.view(len(x), 4, 16, -1).softmax(2).mul(torch.arange(16, device=x.device, dtype=box.dtype).view(1, 1, 16, 1)).sum(2)
        grids = []
        for f, s in ((a, 8), (b, 16), (c, 32)):
            h, w = f.shape[2:]
            y, g = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
            grids.append(torch.stack([g, y]).flatten(1) * s + s / 2)
        grid = torch.cat(grids, 1)
        stride = torch.cat([torch.full((1, f[0, 0].numel()), float(s), device=x.device) for f, s in ((a, 8), (b, 16), (c, 32))], 1)
        return torch.cat([grid - d[:, :2] * stride, grid + d[:, 2:] * stride], 1), kind, grid


def iou(a, b):
    lo, hi = torch.max(a[..., :2], b[..., :2]), torch.min(a[..., 2:], b[..., 2:])
    inter = (hi - lo).clamp(min=0).prod(-1)
    return inter / ((a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - inter + 1e-7)


def loss_of(box, kind, grid, labels):
    box, kind = box.transpose(1, 2).float(), kind.transpose(1, 2).float()
    target, total = torch.zeros_like(kind), 0.0
    for i, (classes, real) in enumerate(labels):
        inside = ((grid.t()[None] > real[:, None, :2]) & (grid.t()[None] < real[:, None, 2:])).all(-1)
        with torch.no_grad():
            quality = iou(box[i].detach()[None], real[:, None]) * inside
            best, where = quality.topk(10, 1)
        target[i, where.flatten(), classes.repeat_interleave(10)] = best.flatten().clamp(min=0.05)
        total = total + (1 - iou(box[i][where.flatten()], real.repeat_interleave(10, 0))).mean()
    return 7.5 * total + F.binary_cross_entropy_with_logits(kind, target, reduction="sum") / target.sum().clamp(min=1)


def nms(boxes, scores, limit):
    order, kept = scores.argsort(descending=True)[:300], []
    boxes = boxes[order]
    m = (iou(boxes[:, None], boxes[None]) > limit).cpu()
    gone = torch.zeros(len(boxes), dtype=torch.bool)
    for i in range(len(boxes)):
        if not gone[i]:
            kept.append(i)
            gone |= m[i]
    return order[torch.tensor(kept, dtype=torch.long, device=order.device)]


model = Yolo().cuda().to(memory_format=torch.channels_last)
average = copy.deepcopy(model).eval().requires_grad_(False)
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.SGD([{"params": rest}, {"params": decay, "weight_decay": 5e-4}], lr=0.01, momentum=0.937, nesterov=True)
scaler = torch.amp.GradScaler()
for step in range(9):
    size = (640, 640, 480, 480, 576, 576, 416, 640, 640)[step]
    images = torch.randint(0, 256, (12, 3, size, size), dtype=torch.uint8).cuda().to(memory_format=torch.channels_last).float() / 255
    labels = []
    for _ in range(12):
        k = random.randint(2, 30)
        lo = torch.rand(k, 2) * size * 0.6
        labels.append((torch.randint(0, 80, (k,)).cuda(), torch.cat([lo, lo + 40 + torch.rand(k, 2) * size * 0.3], 1).cuda()))
    with torch.autocast("cuda", torch.float16):
        box, kind, grid = model(images)
    loss = loss_of(box, kind, grid, labels)
    scaler.scale(loss).backward()
    if step % 2 == 1:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        with torch.no_grad():
            for a, p in zip(average.state_dict().values(), model.state_dict().values()):
                if a.dtype.is_floating_point:
                    a.mul_(0.99).add_(p, alpha=0.01)
    print(step, size, loss.item())
average.half()
with torch.no_grad():
    images = torch.rand(16, 3, 640, 640).cuda().half().contiguous(memory_format=torch.channels_last)
    box, kind, _ = average(images)
    counts = []
    for b, k in zip(box.transpose(1, 2), kind.sigmoid().amax(1)):
        kept = k.topk(1000).indices
        counts.append(len(nms(b[kept].float(), k[kept].float(), 0.7)))
print(sum(counts) > 0)
