"""A detector of one stage, anchor-free: a backbone of residual blocks in channels_last, boxes of a varying number assigned on the host, generalized overlap, bfloat16, then thresholds and NMS."""
import random

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

random.seed(920)
torch.manual_seed(920)


def cbs(c, o, k=3, s=1):
    return nn.Sequential(nn.Conv2d(c, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True))


class Part(nn.Module):
    def __init__(self, c, n=2):
        super().__init__()
        self.a, self.b, self.out = cbs(c, c // 2, 1), cbs(c, c // 2, 1), cbs(c, c, 1)
        self.m = nn.Sequential(*(nn.Sequential(cbs(c // 2, c // 2, 1), cbs(c // 2, c // 2)) for _ in range(n)))

    def forward(self, x):
        return self.out(torch.cat([self.m(self.a(x)), self.b(x)], 1))


class Net(nn.Module):
    def __init__(self, classes=20):
        super().__init__()
        self.stem = nn.Sequential(cbs(3, 32, 3, 2), cbs(32, 64, 3, 2), Part(64))
        self.c3, self.c4, self.c5 = (nn.Sequential(cbs(a, b, 3, 2), Part(b)) for a, b in ((64, 128), (128, 256), (256, 512)))
        self.l5, self.l4 = cbs(512, 256, 1), cbs(256, 128, 1)
        self.p4, self.p3 = nn.Sequential(cbs(512, 256, 1), Part(256)), nn.Sequential(cbs(256, 128, 1), Part(128))
        self.heads = nn.ModuleList(nn.Sequential(cbs(w, 128), nn.Conv2d(128, 4 + classes, 1)) for w in (128, 256, 512))

    def forward(self, x):
        c3 = self.c3(self.stem(x))
        c4 = self.c4(c3)
        c5 = self.c5(c4)
        p4 = self.p4(torch.cat([F.interpolate(self.l5(c5), scale_factor=2), c4], 1))
        p3 = self.p3(torch.cat([F.interpolate(self.l4(p4), scale_factor=2), c3], 1))
        return torch.cat([h(p).flatten(2).transpose(1, 2) for h, p in zip(self.heads, (p3, p4, c5))], 1)


def centers(size):
    rows = []
    for s in (8, 16, 32):
        c = (torch.arange(size // s) + 0.5) * s
        y, x = torch.meshgrid(c, c, indexing="ij")
        rows.append(torch.stack([x.flatten(), y.flatten(), torch.full((len(c) ** 2,), float(s))], 1))
    return torch.cat(rows)


net = Net().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.937, nesterov=True)
points = centers(384)
grid = points.cuda()


def boxes_of(raw):
    d = F.softplus(raw[..., :4]) * grid[:, 2:]
    return torch.cat([grid[:, :2] - d[..., :2], grid[:, :2] + d[..., 2:]], -1)


for step in range(6):
    images, found = torch.rand(16, 3, 384, 384).cuda().to(memory_format=torch.channels_last), []
    for b in range(16):
        for _ in range(random.randrange(1, 8)):
            cx, cy, w, h = random.uniform(40, 340), random.uniform(40, 340), random.uniform(20, 160), random.uniform(20, 160)
            level = 8 if w * h < 2500 else 16 if w * h < 10000 else 32
            near = ((points[:, 0] - cx).abs() < 1.5 * level) & ((points[:, 1] - cy).abs() < 1.5 * level) & (points[:, 2] == level)
            for i in near.nonzero()[:, 0].tolist():
                found.append((b, i, cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, random.randrange(20)))
    rows = torch.tensor(found).cuda()
    b, i, name = rows[:, 0].long(), rows[:, 1].long(), rows[:, 6].long()
    with torch.autocast("cuda", torch.bfloat16):
        raw = net(images)
    raw = raw.float()
    loss = torchvision.ops.generalized_box_iou_loss(boxes_of(raw)[b, i], rows[:, 2:6], reduction="mean")
    target = torch.zeros_like(raw[..., 4:])
    target[b, i, name] = 1.0
    loss = loss + torchvision.ops.sigmoid_focal_loss(raw[..., 4:], target, reduction="sum") / len(rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, len(rows), loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    raw = net(torch.rand(8, 3, 384, 384).cuda().to(memory_format=torch.channels_last)).float()
    score, name = raw[..., 4:].sigmoid().max(-1)
    for box, s, n in zip(boxes_of(raw), score, name):
        top = s.topk(300).indices
        print(len(torchvision.ops.batched_nms(box[top], s[top], n[top], 0.6)), end=" ")
