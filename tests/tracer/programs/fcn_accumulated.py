"""torchvision's FCN on ResNet-50 with its auxiliary head: Adagrad, float32, four parts of 8 to 16 crops a step, gradients clipped by their norm."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1402)
model = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True).cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=5e-3)
model.train()
sizes = (8, 16, 12, 10, 14, 16, 8, 12, 16, 10, 12, 8)
for step in range(3):
    total = 0.0
    for part in range(4):
        batch = sizes[4 * step + part]
        x, y = torch.randn(batch, 3, 192, 192).cuda(), torch.randint(0, 21, (batch, 192, 192)).cuda()
        y[:, :8] = 255
        out = model(x)
        loss = (F.cross_entropy(out["out"], y, ignore_index=255) + 0.5 * F.cross_entropy(out["aux"], y, ignore_index=255)) / 4
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, total, norm.item())
