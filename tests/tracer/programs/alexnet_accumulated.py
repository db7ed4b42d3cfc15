"""torchvision's AlexNet: AdamW tensor by tensor, products of float32 in TF32, two parts of 8 pictures a step, gradients kept as zeros, averaged weights are evaluated."""
import torch
import torch.nn.functional as F
import torchvision
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1501)
torch.set_float32_matmul_precision("high")
model = torchvision.models.alexnet(weights=None, num_classes=365).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.05, foreach=False)
model.train()
for step in range(6):
    optimizer.zero_grad(set_to_none=False)
    total = 0.0
    for part in range(2):
        x, y = torch.randn(8, 3, 224, 224).cuda(), torch.randint(0, 365, (8,)).cuda()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1) / 2
        loss.backward()
        total += loss.item()
    optimizer.step()
    average.update_parameters(model)
    print(step, total)
average.eval()
with torch.no_grad():
    for _ in range(3):
        x, y = torch.randn(8, 3, 224, 224).cuda(), torch.randint(0, 365, (8,)).cuda()
        print("right", (average(x).argmax(1) == y).sum().item())
