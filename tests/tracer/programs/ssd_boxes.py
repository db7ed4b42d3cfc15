"""A detector with anchors written out: a small VGG with six maps of anchors, boxes of a varying number matched on the card, hard negatives by sorting, then non-maximum suppression."""
import random

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

random.seed(822)
torch.manual_seed(822)


def block(c, o, stride=1):
    return nn.Sequential(nn.Conv2d(c, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class SSD(nn.Module):
    def __init__(self, classes=21, anchors=4):
        super().__init__()
        self.base = nn.Sequential(block(3, 64), nn.MaxPool2d(2), block(64, 128), nn.MaxPool2d(2), block(128, 256), block(256, 256), nn.MaxPool2d(2), block(256, 512), block(512, 512))
        self.more = nn.ModuleList([nn.Sequential(block(512, 256), block(256, 512, 2)), nn.Sequential(block(512, 128), block(128, 256, 2)), nn.Sequential(block(256, 128), block(128, 256, 2))])
        widths = [512, 512, 256, 256]
        self.boxes = nn.ModuleList(nn.Conv2d(w, anchors * 4, 3, 1, 1) for w in widths)
        self.names = nn.ModuleList(nn.Conv2d(w, anchors * classes, 3, 1, 1) for w in widths)
        self.classes = classes

    def forward(self, x):
        maps = [self.base(x)]
        for m in self.more:
            maps.append(m(maps[-1]))
        flat = lambda t, n: t.permute(0, 2, 3, 1).reshape(len(t), -1, n)  # noqa: E731
        return torch.cat([flat(f(m), 4) for f, m in zip(self.boxes, maps)], 1), torch.cat([flat(f(m), self.classes) for f, m in zip(self.names, maps)], 1)


def anchors(size=256):
    rows = []
    for side, scale in ((32, 0.1), (16, 0.25), (8, 0.45), (4, 0.7)):
        c = (torch.arange(side) + 0.5) / side
        y, x = torch.meshgrid(c, c, indexing="ij")
        for ratio in (1.0, 2.0, 0.5, 1.3):
            w, h = scale * ratio**0.5, scale / ratio**0.5
            rows.append(torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1).view(-1, 1, 4))
    return torch.cat([torch.cat(rows[i : i + 4], 1).view(-1, 4) for i in range(0, 16, 4)])


model, prior = SSD().cuda(), anchors().cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, weight_decay=5e-4)
for step in range(6):
    images, places, names = torch.rand(24, 3, 256, 256).cuda(), [], []
    for _ in range(24):
        n = random.randrange(1, 12)
        corner = torch.rand(n, 2) * 0.6
        box = torch.cat([corner, corner + 0.1 + 0.3 * torch.rand(n, 2)], 1).cuda()
        overlap = torchvision.ops.box_iou(prior, box)
        best, index = overlap.max(1)
        label = torch.randint(1, 21, (n,)).cuda()[index]
        label[best < 0.4] = 0
        places.append(box[index] - prior)
        names.append(label)
    place, name = torch.stack(places), torch.stack(names)
    boxes, scores = model(images)
    positive = name > 0
    smooth = F.smooth_l1_loss(boxes, place, reduction="none").sum(-1)
    entropy = F.cross_entropy(scores.flatten(0, 1), name.flatten(), reduction="none").view_as(name)
    rank = entropy.masked_fill(positive, 0).sort(1, descending=True).indices.sort(1).indices
    negative = rank < 3 * positive.sum(1, keepdim=True).clamp(min=1)
    loss = ((smooth * positive).sum() + (entropy * (positive | negative)).sum()) / positive.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    boxes, scores = model(torch.rand(8, 3, 256, 256).cuda())
    best, name = scores.softmax(-1)[..., 1:].max(-1)
    for b, s, n in zip(boxes + prior, best, name):
        top = s.topk(200).indices
        print(len(torchvision.ops.batched_nms(b[top], s[top], n[top], 0.45)), end=" ")
