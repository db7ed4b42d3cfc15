"""Keypoints of persons with torchvision's Keypoint R-CNN: pictures of one size, three sizes of training, AdamW with two rates, checkpoints of the state, then detections."""
import copy

import torch
import torchvision

torch.manual_seed(1303)
model = torchvision.models.detection.keypointrcnn_resnet50_fpn(
    weights=None, weights_backbone=None, num_classes=2, num_keypoints=17, min_size=(320, 352, 384), max_size=512, trainable_backbone_layers=5).cuda()
body = [p for n, p in model.named_parameters() if n.startswith("backbone") and p.requires_grad]
heads = [p for n, p in model.named_parameters() if not n.startswith("backbone")]
optimizer = torch.optim.AdamW([{"params": body, "lr": 1e-5}, {"params": heads, "lr": 1e-4}], weight_decay=1e-4)


def sample(i):
    people = 1 + i % 3
    boxes, points = torch.zeros(people, 4), torch.zeros(people, 17, 3)
    for k in range(people):
        x, y, w, h = 24 + 90 * k + i % 7, 30 + 11 * k, 80, 180 + 6 * (i % 4)
        boxes[k] = torch.tensor([x, y, x + w, y + h])
        points[k, :, 0] = x + torch.rand(17) * w
        points[k, :, 1] = y + torch.rand(17) * h
        points[k, :, 2] = 1
    return torch.rand(3, 360, 480).cuda(), {"boxes": boxes.cuda(), "labels": torch.ones(people, dtype=torch.long).cuda(), "keypoints": points.cuda()}


best = None
for step in range(6):
    images, targets = zip(*(sample(4 * step + i) for i in range(4)))
    losses = model(images, targets)
    loss = losses["loss_classifier"] + losses["loss_box_reg"] + losses["loss_keypoint"] + losses["loss_objectness"] + losses["loss_rpn_box_reg"]
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step == 3:
        best = copy.deepcopy(model.state_dict())
    print(step, loss.item())
model.load_state_dict(best)
model.eval()
with torch.no_grad():
    for i in range(2):
        out = model([sample(i)[0], sample(i + 1)[0]])
        print([o["keypoints"].shape for o in out])
