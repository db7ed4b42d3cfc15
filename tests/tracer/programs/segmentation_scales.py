"""Semantic segmentation with crops of several sizes, an auxiliary loss, and evaluation over windows and scales."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(66)
model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=19, aux_loss=True).cuda()
groups = [{"params": model.backbone.parameters(), "lr": 0.001}, {"params": [*model.classifier.parameters(), *model.aux_classifier.parameters()], "lr": 0.01}]
optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=5e-4, nesterov=True)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 20, power=0.9)
for step in range(8):
    side = (320, 512, 416, 640)[step % 4]
    image = torch.rand(6, 3, side, side).cuda()
    label = torch.randint(0, 20, (6, side, side)).cuda()
    label[label == 19] = 255
    out = model(image)
    loss = F.cross_entropy(out["out"], label, ignore_index=255) + 0.4 * F.cross_entropy(out["aux"], label, ignore_index=255)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    whole = torch.rand(1, 3, 1024, 2048, device="cuda")
    total = torch.zeros(1, 19, 1024, 2048, device="cuda")
    for scale in (0.75, 1.0, 1.25):
        scaled = F.interpolate(whole, scale_factor=scale, mode="bilinear", align_corners=False)
        h, w = scaled.shape[2:]
        scores, counts = torch.zeros(1, 19, h, w, device="cuda"), torch.zeros(1, 1, h, w, device="cuda")
        for top in range(0, max(h - 512, 0) + 1, 256):
            for left in range(0, max(w - 768, 0) + 1, 384):
                part = scaled[:, :, top : top + 512, left : left + 768]
                scores[:, :, top : top + 512, left : left + 768] += model(part)["out"].softmax(1)
                counts[:, :, top : top + 512, left : left + 768] += 1
        total += F.interpolate(scores / counts.clamp(min=1), size=(1024, 2048), mode="bilinear", align_corners=False)
    print(total.argmax(1).unique().numel())
