"""Cells in pictures: a U-Net with batch norm and transposed convolutions, float16 with a scaler, Dice and cross entropy, then a large picture in overlapping tiles."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(912)


def double(c, o):
    return nn.Sequential(nn.Conv2d(c, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, widths=(48, 96, 192, 384)):
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((1,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(double(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        kept = []
        for i, d in enumerate(self.down):
            x = d(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([kept[i], self.up[i](x)], 1))
        return self.out(x)


net = UNet().cuda()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for step in range(7):
    x, y = torch.rand(10, 1, 256, 256).cuda(), torch.randint(0, 3, (10, 256, 256)).cuda()
    with torch.autocast("cuda", torch.float16):
        logits = net(x)
    p, t = logits.float().softmax(1), F.one_hot(y, 3).permute(0, 3, 1, 2).float()
    dice = 1 - (2 * (p * t).sum((2, 3)) + 1) / (p.sum((2, 3)) + t.sum((2, 3)) + 1)
    loss = F.cross_entropy(logits.float(), y) + dice.mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
net.eval()
big, total, count = torch.rand(1, 1, 1024, 1024), torch.zeros(3, 1024, 1024), torch.zeros(1024, 1024)
with torch.no_grad():
    for y in range(0, 769, 192):
        for x in range(0, 769, 192):
            total[:, y : y + 256, x : x + 256] += net(big[:, :, y : y + 256, x : x + 256].cuda())[0].cpu()
            count[y : y + 256, x : x + 256] += 1
print((total / count.clamp(min=1)).argmax(0).float().mean().item())
