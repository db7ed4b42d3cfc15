"""Distillation: a large frozen vision transformer in half precision teaches a small one, with hidden states caught by hooks."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(82)
teacher = torchvision.models.vit_b_16(weights=None).cuda().half().eval().requires_grad_(False)
student = torchvision.models.swin_t(weights=None).cuda()
bridge = nn.Linear(768, 768).cuda()
caught = {}
for i in (5, 11):
    teacher.encoder.layers[i].register_forward_hook(lambda module, args, out, i=i: caught.__setitem__(i, out.detach()))
student.norm.register_forward_hook(lambda module, args, out: caught.__setitem__("student", out))
optimizer = torch.optim.AdamW([*student.parameters(), *bridge.parameters()], lr=5e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda")
for step in range(5):
    image, label = torch.rand(24, 3, 224, 224).cuda(), torch.randint(0, 1000, (24,)).cuda()
    with torch.no_grad():
        wanted = teacher(image.half()).float()
    with torch.autocast("cuda", torch.float16):
        logits = student(image)
        hidden = bridge(caught["student"].flatten(1, 2).mean(1))
        loss = 0.5 * F.cross_entropy(logits, label)
        loss = loss + 2.0 * F.kl_div(F.log_softmax(logits / 2, -1), F.log_softmax(wanted / 2, -1), log_target=True, reduction="batchmean")
        loss = loss + F.mse_loss(hidden, (caught[5] + caught[11]).mean(1).float())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    caught.clear()
    print(step, loss.item())
