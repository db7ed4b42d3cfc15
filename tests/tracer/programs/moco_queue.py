"""Momentum contrast: two crops, a key encoder that follows slowly, a queue of old keys as negatives."""
import copy

import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(64)
query = torchvision.models.resnet50(weights=None, num_classes=128)
query.fc = torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.ReLU(), query.fc)
query.fc[2] = torch.nn.Linear(2048, 128)
query = query.cuda()
key = copy.deepcopy(query).requires_grad_(False)
queue, place = F.normalize(torch.randn(128, 16384, device="cuda"), dim=0), 0
optimizer = torch.optim.SGD(query.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for step in range(6):
    images = torch.rand(48, 3, 176, 176).cuda()
    first = images + 0.1 * torch.randn_like(images)
    second = torch.flip(images, dims=[3]) * (0.6 + 0.8 * torch.rand(48, 1, 1, 1, device="cuda"))
    with torch.no_grad():
        for slow, fast in zip(key.parameters(), query.parameters()):
            slow.mul_(0.999).add_(fast, alpha=0.001)
        shuffle = torch.randperm(48, device="cuda")
        k = F.normalize(key(second[shuffle]), dim=1)[torch.argsort(shuffle)]
    q = F.normalize(query(first), dim=1)
    same = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
    others = torch.einsum("nc,ck->nk", q, queue.clone().detach())
    logits = torch.cat([same, others], dim=1) / 0.07
    loss = F.cross_entropy(logits, torch.zeros(48, dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    queue[:, place : place + 48] = k.t()
    place = (place + 48) % 16384
    print(step, loss.item())
