"""A detector of torchvision is trained on images of several sizes, then finds boxes: anchors, NMS, roi_align."""
import torch
import torchvision
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_fpn


def batch(count, g):
    images, targets = [], []
    for _ in range(count):
        h, w = (int(n) for n in torch.randint(256, 512, (2,), generator=g))
        corner = torch.rand(8, 2, generator=g) * torch.tensor([w - 64.0, h - 64.0])
        boxes = torch.cat([corner, corner + 16 + 48 * torch.rand(8, 2, generator=g)], dim=1)
        images.append(torch.rand(3, h, w, generator=g).cuda())
        targets.append({"boxes": boxes.cuda(), "labels": torch.randint(1, 21, (8,), generator=g).cuda()})
    return images, targets


torch.manual_seed(28)
g = torch.Generator().manual_seed(28)
model = fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, num_classes=21, min_size=480,
                                          max_size=800, trainable_backbone_layers=6).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4, momentum=0.9)
for step in range(6):
    images, targets = batch(8, g)
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, {k: round(v.item(), 3) for k, v in losses.items()})
model.eval()
with torch.no_grad():
    for _ in range(2):
        found = model(batch(4, g)[0])
        kept = [torchvision.ops.batched_nms(f["boxes"], f["scores"], f["labels"], 0.3) for f in found]
        print([len(k) for k in kept])
