"""MobileViT of timm: convolutions and attention over unfolded patches, mixup and cutmix by hand, lookahead in layers' learning rates, channels_last with float16, then evaluation at other sizes."""
import timm
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1011)
net = timm.create_model("mobilevit_s", pretrained=False, num_classes=200).cuda().to(memory_format=torch.channels_last)
groups = {}
for name, p in net.named_parameters():
    groups.setdefault(name.split(".")[0] + (".bias" if p.ndim < 2 else ""), []).append(p)
optimizer = torch.optim.SGD([{"params": v, "lr": 0.02 * (i + 1) / len(groups), "weight_decay": 0 if k.endswith("bias") else 1e-4} for i, (k, v) in enumerate(groups.items())], momentum=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(7):
    x = torch.randn(24, 3, 256, 256).cuda().contiguous(memory_format=torch.channels_last)
    y = F.one_hot(torch.randint(0, 200, (24,)).cuda(), 200).float()
    other = torch.randperm(24).cuda()
    if step % 2:
        x, y = 0.7 * x + 0.3 * x[other], 0.7 * y + 0.3 * y[other]
    else:
        x[:, :, 64:160, 64:160] = x[other][:, :, 64:160, 64:160]
        y = y * (1 - 96 * 96 / 65536) + y[other] * 96 * 96 / 65536
    with torch.autocast("cuda", torch.float16):
        loss = -(y * net(x).float().log_softmax(-1)).sum(-1).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 2.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
net.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for batch, side in ((48, 256), (32, 320), (48, 224)):
        x = torch.randn(batch, 3, side, side, device="cuda").contiguous(memory_format=torch.channels_last)
        print(side, net(x).softmax(-1).amax(-1).mean().item())
