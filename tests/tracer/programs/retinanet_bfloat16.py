"""torchvision's RetinaNet on ResNet-50 with bfloat16 weights: Adagrad, batches of 24, gradients clipped by their norm, an evaluation of other sizes at the end, in float32, as torchvision's suppression of boxes takes no bfloat16."""
import torch
import torchvision

torch.manual_seed(1503)
model = torchvision.models.detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21, min_size=256, max_size=384).to("cuda", torch.bfloat16)
optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-3)
model.train()
for step in range(4):
    images, targets = [], []
    for k in range(24):
        high, wide, n = 256 + 32 * (k % 3), 320 - 32 * ((k + step) % 3), 1 + (k + step) % 5
        images.append(torch.rand(3, high, wide).to("cuda", torch.bfloat16))
        corner = torch.rand(n, 2) * 128
        boxes = torch.cat([corner, corner + 16 + torch.rand(n, 2) * 96], 1)
        targets.append({"boxes": boxes.to("cuda", torch.bfloat16), "labels": torch.randint(1, 21, (n,)).cuda()})
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), norm.item())
model.float().eval()
with torch.no_grad():
    for size in ((192, 256), (288, 352), (384, 384)):
        found = model([torch.rand(3, *size).cuda() for _ in range(8)])
        print(size, [len(f["boxes"]) for f in found])
