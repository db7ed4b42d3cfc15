"""XCiT of timm (attention between channels) with soft targets: float16 with a scaler, an average of the weights by timm, gradients clipped by value."""
import timm
import torch
import torch.nn.functional as F
from timm.utils import ModelEmaV2

torch.manual_seed(1302)
model = timm.create_model("xcit_small_12_p16_224", pretrained=False, num_classes=120, drop_path_rate=0.05).cuda()
average = ModelEmaV2(model, decay=0.99)
optimizer = torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(6):
    x = torch.randn(40, 3, 224, 224).cuda()
    target = F.one_hot(torch.randint(0, 120, (40,)), 120).float().cuda()
    mixed = 0.7 * x + 0.3 * x.flip(0)
    target = 0.7 * target + 0.3 * target.flip(0)
    with torch.amp.autocast("cuda"):
        loss = -(target * F.log_softmax(model(mixed), 1)).sum(1).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    average.update(model)
    print(step, loss.item())
average.module.eval()
with torch.no_grad():
    for _ in range(2):
        print(average.module(torch.randn(64, 3, 224, 224).cuda()).argmax(1)[0].item())
