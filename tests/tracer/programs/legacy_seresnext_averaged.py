"""timm's first SE-ResNeXt in channels last: AdamW, float16 with a scaler, four parts a step, the last one small, gradients clipped by value, an average of the weights is evaluated."""
import timm
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1406)
model = timm.create_model("legacy_seresnext26_32x4d", pretrained=False, num_classes=120).to("cuda", memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99), use_buffers=True)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(3):
    for batch in (32, 32, 32, 9):
        x = torch.randn(batch, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        y = torch.randint(0, 120, (batch,)).cuda()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(x), y) / 4
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(step, 4 * loss.item())
average.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for _ in range(2):
        x = torch.randn(32, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        print(average(x).argmax(1).float().mean().item())
