"""Detection by queries: a residual backbone with frozen batch norm, a transformer, boxes matched greedily on the host, losses of each layer."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(113)
torch.manual_seed(113)


class Frozen(nn.Module):
    def __init__(self, c):
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("mean", 0.0), ("var", 1.0)):
            self.register_buffer(name, torch.full((c,), value))

    def forward(self, x):
        scale = (self.weight * (self.var + 1e-5).rsqrt()).reshape(1, -1, 1, 1)
        return x * scale + (self.bias.reshape(1, -1, 1, 1) - self.mean.reshape(1, -1, 1, 1) * scale)


class Residual(nn.Module):
    def __init__(self, c, o, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(c, o, 3, stride, 1, bias=False), Frozen(o)
        self.conv2, self.norm2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), Frozen(o)
        self.skip = nn.Sequential(nn.Conv2d(c, o, 1, stride, bias=False), Frozen(o)) if stride > 1 or c != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.skip(x))


class Detr(nn.Module):
    def __init__(self, width=256, queries=100, classes=91):
        super().__init__()
        stages, c = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), Frozen(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for o, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            stages += [Residual(c, o, stride), Residual(o, o, 1)]
            c = o
        self.backbone, self.enter = nn.Sequential(*stages), nn.Conv2d(512, width, 1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 8, 1024, 0.1, batch_first=True), 3, enable_nested_tensor=False)
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(width, 8, 1024, 0.1, batch_first=True) for _ in range(4))
        self.queries, self.rows, self.columns = nn.Embedding(queries, width), nn.Embedding(64, width // 2), nn.Embedding(64, width // 2)
        self.classes, self.boxes = nn.Linear(width, classes + 1), nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, images, pads):
        f = self.enter(self.backbone(images))
        b, c, h, w = f.shape
        pad = F.interpolate(pads[:, None].float(), size=(h, w))[:, 0].bool().flatten(1)
        place = torch.cat([self.columns.weight[:w].expand(h, w, -1), self.rows.weight[:h, None].expand(h, w, -1)], -1).flatten(0, 1)
        memory = self.encoder(f.flatten(2).transpose(1, 2) + place, src_key_padding_mask=pad)
        x, out = self.queries.weight.expand(b, -1, -1), []
        for layer in self.decoder:
            x = layer(x, memory, memory_key_padding_mask=pad)
            out.append((self.classes(x), self.boxes(x).sigmoid()))
        return out


def corners(b):
    return torch.cat([b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2], -1)


def overlap(a, b):
    a, b = corners(a), corners(b)
    lo, hi = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (hi - lo).clamp(min=0).prod(-1)
    union = (a[:, 2:] - a[:, :2]).prod(-1)[:, None] + (b[:, 2:] - b[:, :2]).prod(-1)[None] - inter
    outer = (torch.max(a[:, None, 2:], b[None, :, 2:]) - torch.min(a[:, None, :2], b[None, :, :2])).clamp(min=0).prod(-1)
    return inter / union - (outer - union) / outer


@torch.no_grad()
def match(logits, boxes, targets):
    p, pairs = logits.flatten(0, 1).softmax(-1), []
    labels, real = torch.cat([t[0] for t in targets]), torch.cat([t[1] for t in targets])
    cost = 5 * torch.cdist(boxes.flatten(0, 1), real, p=1) - p[:, labels] - 2 * overlap(boxes.flatten(0, 1), real)
    cost = cost.view(len(targets), -1, len(labels)).cpu()
    for i, c in enumerate(cost.split([len(t[0]) for t in targets], -1)):
        order, used = [], set()
        for j in range(c.shape[2]):
            q = next(q for q in c[i, :, j].argsort().tolist() if q not in used)
            used.add(q)
            order.append(q)
        pairs.append((torch.tensor(order), torch.arange(len(order))))
    return pairs


def loss_of(logits, boxes, targets):
    pairs = match(logits, boxes, targets)
    rows = torch.cat([torch.full_like(q, i) for i, (q, _) in enumerate(pairs)])
    picked = torch.cat([q for q, _ in pairs])
    labels = torch.cat([t[0][j.cuda()] for t, (_, j) in zip(targets, pairs)])
    real = torch.cat([t[1][j.cuda()] for t, (_, j) in zip(targets, pairs)])
    classes = torch.full(logits.shape[:2], 91, dtype=torch.long, device="cuda")
    classes[rows, picked] = labels
    weight = torch.ones(92, device="cuda")
    weight[-1] = 0.1
    found = boxes[rows, picked]
    return (F.cross_entropy(logits.transpose(1, 2), classes, weight) + 5 * (found - real).abs().sum() / len(real)
            + 2 * (1 - overlap(found, real).diag()).sum() / len(real))


model = Detr().cuda()
groups = [{"params": [p for n, p in model.named_parameters() if "backbone" not in n]},
          {"params": [p for n, p in model.named_parameters() if "backbone" in n], "lr": 1e-5}]
optimizer = torch.optim.AdamW(groups, lr=1e-4, weight_decay=1e-4)
for step in range(7):
    sizes = [(random.randrange(320, 640, 32), random.randrange(320, 640, 32)) for _ in range(6)]
    h, w = max(s[0] for s in sizes), max(s[1] for s in sizes)
    images, pads, targets = torch.zeros(6, 3, h, w), torch.ones(6, h, w, dtype=torch.bool), []
    for i, (a, b) in enumerate(sizes):
        images[i, :, :a, :b].normal_()
        pads[i, :a, :b] = False
        k = random.randint(1, 20)
        targets.append((torch.randint(0, 91, (k,)).cuda(), (torch.rand(k, 4) * 0.4 + 0.2).cuda()))
    out = model(images.cuda(), pads.cuda())
    loss = sum(loss_of(*o, targets) for o in out)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print(step, h, w, loss.item())
