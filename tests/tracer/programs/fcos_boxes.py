"""An anchor-free detector of torchvision (FCOS, ResNet-50 with a pyramid): pictures of different sizes in one batch, SGD with a warm-up, gradients clipped, then detections."""
import torch
import torchvision

torch.manual_seed(1101)
model = torchvision.models.detection.fcos_resnet50_fpn(weights=None, weights_backbone=None, num_classes=12, min_size=320, max_size=480).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.002, momentum=0.9, weight_decay=1e-4)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=5)


def batch(step, count=6):
    images, targets = [], []
    for i in range(count):
        h, w = 240 + 40 * ((step + i) % 4), 320 + 32 * ((2 * step + i) % 3)
        corner = torch.rand(3 + i % 4, 2) * torch.tensor([w * 0.5, h * 0.5])
        extent = 16 + torch.rand(3 + i % 4, 2) * torch.tensor([w * 0.4, h * 0.4])
        images.append(torch.rand(3, h, w).cuda())
        targets.append({"boxes": torch.cat([corner, corner + extent], 1).cuda(), "labels": torch.randint(1, 12, (len(corner),)).cuda()})
    return images, targets


for step in range(6):
    losses = model(*batch(step))
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    warmup.step()
    print(step, {k: round(v.item(), 3) for k, v in losses.items()})
model.eval()
with torch.no_grad():
    for step in range(2):
        print([len(d["boxes"]) for d in model(batch(step, 4)[0])])
