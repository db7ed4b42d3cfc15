"""Clips with mixed 3-D and 2-D convolutions (torchvision's MC3): multi-task heads over two data sets, gradient surgery between their losses, float32, dense windows at the end."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(1012)
net = torchvision.models.video.mc3_18()
net.fc = nn.Identity()
net = net.cuda()
heads = nn.ModuleList(nn.Linear(512, n) for n in (51, 101)).cuda()
optimizer = torch.optim.SGD([*net.parameters(), *heads.parameters()], 0.01, momentum=0.9)
shared = list(net.parameters())
for step in range(5):
    grads = []
    for task, (head, classes, frames) in enumerate(zip(heads, (51, 101), (8, 16))):
        clip, y = torch.randn(6, 3, frames, 112, 112, device="cuda"), torch.randint(0, classes, (6,), device="cuda")
        loss = F.cross_entropy(head(F.dropout(net(clip), 0.5)), y)
        loss.backward()
        grads.append(torch.cat([p.grad.flatten() for p in shared]))
        for p in shared:
            p.grad = None
        print(step, task, loss.item())
    a, b = grads
    dot = a @ b
    clash = (dot < 0).float()
    total = a + b - clash * dot * (b / (b @ b) + a / (a @ a))
    at = 0
    for p in shared:
        p.grad = total[at : at + p.numel()].view_as(p)
        at += p.numel()
    optimizer.step()
    optimizer.zero_grad()
    del grads, a, b, total
net.eval()
with torch.inference_mode():
    for length in (48, 64):
        video = torch.randn(3, length, 112, 112, device="cuda")
        windows = video.unfold(1, 16, 8).permute(1, 0, 4, 2, 3)
        print(length, heads[1](net(windows)).softmax(-1).mean(0).amax().item())
