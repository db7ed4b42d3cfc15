"""DeepLabV3 of torchvision on crops: channels_last, float16 with a scaler, an auxiliary head, a polynomial rate, ignored pixels, then whole pictures with a flipped copy."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1102)
model = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD([{"params": model.backbone.parameters(), "lr": 0.005}, {"params": [*model.classifier.parameters(), *model.aux_classifier.parameters()], "lr": 0.05}], lr=0.01, momentum=0.9, weight_decay=1e-4)
rate = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=40, power=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(6):
    x = torch.randn(8, 3, 257, 257).cuda(non_blocking=True).to(memory_format=torch.channels_last)
    y = torch.randint(0, 21, (8, 257, 257))
    y[:, :8] = 255
    y = y.cuda(non_blocking=True)
    with torch.autocast("cuda", torch.float16):
        out = model(x)
        loss = F.cross_entropy(out["out"], y, ignore_index=255) + 0.4 * F.cross_entropy(out["aux"], y, ignore_index=255)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    rate.step()
    print(step, loss.item())
model.eval()
confusion = torch.zeros(21, 21, dtype=torch.long, device="cuda")
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for h, w in ((320, 480), (360, 360)):
        x = torch.randn(2, 3, h, w, device="cuda").to(memory_format=torch.channels_last)
        y = torch.randint(0, 21, (2, h, w), device="cuda")
        p = model(x)["out"].softmax(1) + model(x.flip(3))["out"].flip(3).softmax(1)
        confusion += torch.bincount(21 * y.flatten() + p.argmax(1).flatten(), minlength=441).view(21, 21)
print(confusion.diag().sum().item())
