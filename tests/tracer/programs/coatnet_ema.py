"""CoAtNet of timm in float32: convolutions first, attention with relative positions after, AdamW with a cosine, exponential average, labels with smoothing, evaluation of the average."""
import timm
import torch
from timm.optim import param_groups_weight_decay
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1103)
model = timm.create_model("coatnet_nano_rw_224", pretrained=False, num_classes=100, drop_path_rate=0.05).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99), use_buffers=True)
optimizer = torch.optim.AdamW(param_groups_weight_decay(model, 0.05), 5e-4)
rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(7):
    x, y = torch.randn(32, 3, 224, 224).cuda(), torch.randint(0, 100, (32,)).cuda()
    loss = criterion(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    average.update_parameters(model)
    print(step, loss.item())
average.eval()
with torch.no_grad():
    print(sum((average(torch.randn(64, 3, 224, 224).cuda()).argmax(1) == 3).float().mean().item() for _ in range(2)))
