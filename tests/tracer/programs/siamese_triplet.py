"""Faces told apart: a bottleneck network in channels_last and bfloat16, the hardest triplets of a batch, proxies of classes with margins, then search in an index by chunks."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(207)


class Bottleneck(nn.Module):
    def __init__(self, c, inner, o, stride):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(c, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True), nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True), nn.Conv2d(inner, o, 1, bias=False), nn.BatchNorm2d(o))
        self.skip = nn.Sequential(nn.Conv2d(c, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride > 1 or c != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.net(x) + self.skip(x), inplace=True)


class Faces(nn.Module):
    def __init__(self, out=256):
        super().__init__()
        layers, c = [nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
        for inner, o, stride, blocks in ((64, 192, 1, 2), (96, 384, 2, 3), (192, 768, 2, 3), (320, 1280, 2, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(c, inner, o, stride if i == 0 else 1))
                c = o
        self.net, self.power, self.out = nn.Sequential(*layers), nn.Parameter(torch.tensor(3.0)), nn.Linear(c, out)

    def forward(self, x):
        x = self.net(x)
        x = x.float().clamp(min=1e-6).pow(self.power).mean((2, 3)).pow(1 / self.power)
        return F.normalize(self.out(x))


def hardest(e, labels, margin=0.3):
    far = torch.cdist(e, e)
    same = labels[:, None] == labels
    positive = torch.where(same, far, -1.0).amax(1)
    negative = torch.where(same, torch.inf, far).amin(1)
    return F.relu(positive - negative + margin).mean()


model = Faces().cuda().to(memory_format=torch.channels_last)
proxies = nn.Parameter(torch.randn(8000, 256).cuda())
optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": [proxies], "lr": 0.5}], lr=0.05, momentum=0.9, weight_decay=5e-4)
for step in range(8):
    people = torch.randperm(8000)[:24].repeat_interleave(4).cuda()
    images = torch.randn(96, 3, 112, 112).cuda().to(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.bfloat16):
        e = model(images)
    e = e.float()
    cosine = F.linear(e, F.normalize(proxies))
    target = F.one_hot(people, 8000).bool()
    angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
    logits = 32 * torch.where(target, torch.cos(angle + 0.4), cosine)
    loss = F.cross_entropy(logits, people) + hardest(e, people)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    index = torch.cat([model(torch.randn(256, 3, 112, 112).cuda().to(memory_format=torch.channels_last)).half() for _ in range(6)])
    index = index.repeat(100, 1)
    best, where = None, None
    for i, rows in enumerate(index.split(40000)):
        score, at = (index[:500] @ rows.t()).topk(20, 1)
        at = at + i * 40000
        if best is not None:
            score, order = torch.cat([best, score], 1).topk(20, 1)
            at = torch.cat([where, at], 1).gather(1, order)
        best, where = score, at
print(best.shape, where.max().item() < len(index))
