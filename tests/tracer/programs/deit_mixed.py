"""timm's DeiT (small): mixup and cutmix, soft targets, AdamW with decay by layer, bfloat16, an average of weights, evaluation."""
import copy

import timm
import torch
import torch.nn.functional as F

torch.manual_seed(804)
model = timm.create_model("deit_small_patch16_224", pretrained=False, num_classes=500, drop_path_rate=0.1).cuda()
ema = copy.deepcopy(model).eval().requires_grad_(False)
groups = {}
for name, p in model.named_parameters():
    depth = int(name.split(".")[1]) + 1 if name.startswith("blocks.") else 0 if name.startswith(("patch", "pos", "cls")) else 13
    key = (depth, p.ndim > 1)
    groups.setdefault(key, {"params": [], "lr": 5e-4 * 0.75 ** (13 - depth), "weight_decay": 0.05 if p.ndim > 1 else 0.0})["params"].append(p)
optimizer = torch.optim.AdamW(list(groups.values()))


def soft(y, classes=500, smooth=0.1):
    return torch.full((len(y), classes), smooth / classes, device=y.device).scatter_(1, y[:, None], 1 - smooth + smooth / classes)


for step in range(8):
    x, y = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 500, (64,)).cuda()
    target = soft(y)
    if step % 2:
        lam = 0.7
        x = x.mul_(lam).add_(x.flip(0).mul_(1 - lam))
    else:
        lam = 1 - (96 * 80) / (224 * 224)
        x[:, :, 40:136, 60:140] = x.flip(0)[:, :, 40:136, 60:140]
    target = target * lam + soft(y.flip(0)) * (1 - lam)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(x)
    loss = torch.sum(-target * F.log_softmax(out.float(), dim=-1), dim=-1).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), model.parameters()):
            a.lerp_(b, 0.001)
    if step % 4 == 3:
        with torch.no_grad():
            print(step, loss.item(), ema(torch.randn(96, 3, 224, 224).cuda()).argmax(1).float().mean().item())
