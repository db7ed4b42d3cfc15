"""A wide residual network for small pictures: dropout between convolutions, cutout by masks, SGD with Nesterov, float16 with a scaler, weights averaged, batch norm recomputed."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1008)


class Block(nn.Module):
    def __init__(self, c, o, stride):
        super().__init__()
        self.n1, self.c1, self.n2, self.c2 = nn.BatchNorm2d(c), nn.Conv2d(c, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(c, o, 1, stride, bias=False) if c != o or stride > 1 else None

    def forward(self, x):
        y = F.relu(self.n1(x), inplace=True)
        short = x if self.short is None else self.short(y)
        y = self.c1(y)
        return self.c2(F.dropout(F.relu(self.n2(y), inplace=True), 0.3, self.training)) + short


class Wide(nn.Module):
    def __init__(self, width=6, blocks=3):
        super().__init__()
        sizes, layers = [16, 16 * width, 32 * width, 64 * width], [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
        for i in range(3):
            layers += [Block(sizes[i] if j == 0 else sizes[i + 1], sizes[i + 1], 2 if i and j == 0 else 1) for j in range(blocks)]
        self.body, self.norm, self.head = nn.Sequential(*layers), nn.BatchNorm2d(sizes[-1]), nn.Linear(sizes[-1], 100)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.body(x))).mean((2, 3)))


net = Wide().cuda()
mean = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 7], 0.2)
scaler = torch.amp.GradScaler("cuda", init_scale=512.0)
pixels = torch.arange(32, device="cuda")
for step in range(10):
    x, y = torch.randn(96 if step % 4 == 3 else 128, 3, 32, 32).cuda(non_blocking=True), torch.randint(0, 100, (128,)).cuda()
    y = y[: len(x)]
    row, column = torch.randint(0, 32, (2, len(x), 1), device="cuda")
    hole = ((pixels - row).abs() < 8)[:, None, :, None] & ((pixels - column).abs() < 8)[:, None, None, :]
    x = x.masked_fill(hole, 0)
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    if step >= 5:
        with torch.no_grad():
            for a, b in zip(mean.parameters(), net.parameters()):
                a.lerp_(b, 1 / (step - 4))
    print(step, loss.item())
mean.train()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for _ in range(2):
        mean(torch.randn(256, 3, 32, 32, device="cuda"))
mean.eval()
with torch.inference_mode():
    for batch in (500, 500, 240):
        print(mean(torch.randn(batch, 3, 32, 32, device="cuda")).argmax(1).float().mean().item())
