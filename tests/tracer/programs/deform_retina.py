"""A detector without proposals: a ResNet of torchvision with deformable convolutions in its last stage, a feature pyramid, focal and generalized-IoU losses, SGD with warm-up, batch norm frozen."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.ops import DeformConv2d, FeaturePyramidNetwork, generalized_box_iou_loss, sigmoid_focal_loss

torch.manual_seed(307)


class Deform(nn.Module):
    def __init__(self, c, stride):
        super().__init__()
        self.offset, self.conv = nn.Conv2d(c, 27, 3, stride, 1), DeformConv2d(c, c, 3, stride, 1, bias=False)

    def forward(self, x):
        o = self.offset(x)
        return self.conv(x, o[:, :18], o[:, 18:].sigmoid())


class Net(nn.Module):
    def __init__(self, classes=80):
        super().__init__()
        r = torchvision.models.resnet50(weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d)
        for block in r.layer4:
            block.conv2 = Deform(512, block.conv2.stride)
        self.stem, self.stages = nn.Sequential(r.conv1, r.bn1, r.relu, r.maxpool), nn.ModuleList([r.layer1, r.layer2, r.layer3, r.layer4])
        self.fpn = FeaturePyramidNetwork([512, 1024, 2048], 192)
        def tower(out):
            return nn.Sequential(*[m for _ in range(3) for m in (nn.Conv2d(192, 192, 3, 1, 1), nn.GroupNorm(32, 192), nn.ReLU())], nn.Conv2d(192, out, 3, 1, 1))
        self.classes, self.boxes = tower(classes), tower(5)

    def forward(self, x):
        x, kept = self.stem(x), {}
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i:
                kept[str(i)] = x
        maps = self.fpn(kept).values()
        return [(self.classes(m), self.boxes(m)) for m in maps]


model = Net().cuda()
for p in model.stem.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.01, momentum=0.9, weight_decay=1e-4)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.001, total_iters=50)
for step in range(5):
    h, w = ((320, 416), (384, 320))[step % 2]
    out = model(torch.rand(4, 3, h, w, device="cuda"))
    logits = torch.cat([c.flatten(2).transpose(1, 2) for c, _ in out], 1)
    boxes = torch.cat([b.flatten(2).transpose(1, 2) for _, b in out], 1)
    target = torch.zeros_like(logits)
    hot = torch.arange(0, logits.shape[1], 37, device="cuda")
    target[:, hot, 3] = 1
    mine = boxes[:, hot].reshape(-1, 5)
    corner = torch.rand(len(mine), 2, device="cuda")
    wanted = torch.cat([corner, corner + 0.3], 1)
    got = torch.cat([corner + 0.1 - mine[:, :2].exp() * 0.05, corner + 0.1 + mine[:, 2:4].exp() * 0.05], 1)
    loss = sigmoid_focal_loss(logits, target, reduction="sum") / len(mine) + generalized_box_iou_loss(got, wanted, reduction="mean")
    loss = loss + F.binary_cross_entropy_with_logits(mine[:, 4], torch.rand(len(mine), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    out = model(torch.rand(1, 3, 512, 640, device="cuda"))
    scores, index = torch.cat([c.flatten(2).transpose(1, 2) for c, _ in out], 1).sigmoid().amax(-1).topk(200)
    xy = torch.rand(200, 2, device="cuda")
    print(torchvision.ops.nms(torch.cat([xy, xy + 0.1], 1), scores[0], 0.5).shape)
