"""torchvision's first SqueezeNet: Adam, products of float32 in TF32, four parts of 12 pictures a step, gradients clipped by their norm, averaged weights are evaluated."""
import torch
import torch.nn.functional as F
import torchvision
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1601)
torch.set_float32_matmul_precision("high")
model = torchvision.models.squeezenet1_0(weights=None, num_classes=200, dropout=0.3).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
optimizer = torch.optim.Adam(model.parameters(), 3e-4)
model.train()
for step in range(5):
    total = 0.0
    for part in range(4):
        x, y = torch.randn(12, 3, 256, 256).cuda(), torch.randint(0, 200, (12,)).cuda()
        loss = F.cross_entropy(model(x), y) / 4
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(step, total, norm.item())
average.eval()
with torch.no_grad():
    for _ in range(2):
        x, y = torch.randn(12, 3, 256, 256).cuda(), torch.randint(0, 200, (12,)).cuda()
        print("right", (average(x).argmax(1) == y).sum().item())
