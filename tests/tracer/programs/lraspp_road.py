"""Segmentation of roads with torchvision's LR-ASPP on MobileNetV3: a loss that ignores a class, hard pixels alone, a polynomial rate, confusion counted in the evaluation."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1304)
model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=19).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
rate = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=40, power=0.9)
for step in range(7):
    x = torch.rand(8, 3, 512, 768).cuda()
    y = torch.randint(0, 19, (8, 512, 768))
    y[:, :64] = 255
    y = y.cuda()
    loss = F.cross_entropy(model(x)["out"], y, ignore_index=255, reduction="none").flatten(1)
    hard = loss.topk(loss.shape[1] // 4, dim=1).values.mean()
    optimizer.zero_grad()
    hard.backward()
    optimizer.step()
    rate.step()
    print(step, hard.item())
model.eval()
confusion = torch.zeros(19, 19, dtype=torch.long, device="cuda")
with torch.inference_mode():
    for _ in range(3):
        x, y = torch.rand(4, 3, 512, 1024).cuda(), torch.randint(0, 19, (4, 512, 1024)).cuda()
        guess = model(x)["out"].argmax(1)
        confusion += torch.bincount(19 * y.flatten() + guess.flatten(), minlength=361).view(19, 19)
    both = confusion.diag()
    print((both / (confusion.sum(0) + confusion.sum(1) - both).clamp(min=1)).mean().item())
