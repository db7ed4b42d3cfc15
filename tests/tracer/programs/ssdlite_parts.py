"""torchvision's SSDlite on MobileNetV3 in channels last: fused AdamW, products of float32 in TF32, four parts of 32 pictures a step, gradients clipped by value, an evaluation in between."""
import torch
import torchvision

torch.manual_seed(1504)
torch.set_float32_matmul_precision("high")
model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=31)
model = model.to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=1e-3, fused=True)
for step in range(3):
    model.train()
    for part in range(4):
        images = list(torch.rand(32, 3, 300, 400).to("cuda", memory_format=torch.channels_last))
        targets = []
        for k in range(32):
            n = 1 + (k + part) % 4
            corner = torch.rand(n, 2) * 160
            boxes = torch.cat([corner, corner + 20 + torch.rand(n, 2) * 110], 1)
            targets.append({"boxes": boxes.cuda(), "labels": torch.randint(1, 31, (n,)).cuda()})
        loss = sum(model(images, targets).values()) / 4
        loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, 4 * loss.item())
    if step == 1:
        model.eval()
        with torch.no_grad():
            found = model(list(torch.rand(32, 3, 300, 400).to("cuda", memory_format=torch.channels_last)))
        print("found", sum(len(f["boxes"]) for f in found))
