"""The fine-tuning that torchvision's tutorial shows: Mask R-CNN with new heads for two classes, pictures of different sizes, SGD with a warm-up, then masks of an evaluation."""
import torch
import torchvision
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.mask_rcnn import MaskRCNNPredictor

torch.manual_seed(1205)
model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, min_size=400, max_size=640)
model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, 2)
model.roi_heads.mask_predictor = MaskRCNNPredictor(model.roi_heads.mask_predictor.conv5_mask.in_channels, 256, 2)
model.cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.002, momentum=0.9, weight_decay=0.0005)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.001, total_iters=6)


def picture(i):
    h, w = 320 + 48 * (i % 3), 384 + 32 * (i % 4)
    count = 1 + i % 4
    boxes, masks = torch.zeros(count, 4), torch.zeros(count, h, w, dtype=torch.uint8)
    for k in range(count):
        left, top = 20 + 40 * k + 3 * (i % 5), 16 + 30 * k
        right, bottom = left + 90 + 20 * (i % 3), top + 120
        boxes[k] = torch.tensor([left, top, right, bottom])
        masks[k, top:bottom, left:right] = 1
    target = {"boxes": boxes, "labels": torch.ones(count, dtype=torch.int64), "masks": masks, "iscrowd": torch.zeros(count, dtype=torch.int64)}
    return torch.rand(3, h, w).cuda(), {k: v.cuda() for k, v in target.items()}


for step in range(6):
    images, targets = zip(*(picture(4 * step + i) for i in range(4)))
    losses = model(list(images), list(targets))
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
    print(step, {k: round(v.item(), 3) for k, v in losses.items()})
model.eval()
with torch.inference_mode():
    for step in range(2):
        out = model([picture(step + i)[0] for i in range(2)])
        print([o["masks"].shape for o in out])
