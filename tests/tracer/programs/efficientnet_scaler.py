"""An EfficientNet written out: depthwise 3x3 and 5x5, squeeze and excitation, float16 with a scaler, RMSprop, evaluation."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(102)


class Squeeze(nn.Module):
    def __init__(self, c, r):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, r, 1), nn.Conv2d(r, c, 1)

    def forward(self, x):
        return x * self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))).sigmoid()


class MBConv(nn.Module):
    def __init__(self, c, o, expand, kernel, stride, drop):
        super().__init__()
        m = c * expand
        layers = []
        if expand > 1:
            layers += [nn.Conv2d(c, m, 1, bias=False), nn.BatchNorm2d(m), nn.SiLU(inplace=True)]
        layers += [nn.Conv2d(m, m, kernel, stride, kernel // 2, groups=m, bias=False), nn.BatchNorm2d(m),
                   nn.SiLU(inplace=True), Squeeze(m, max(1, c // 4)), nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o)]
        self.net, self.skip, self.drop = nn.Sequential(*layers), stride == 1 and c == o, drop

    def forward(self, x):
        y = self.net(x)
        if not self.skip:
            return y
        if self.training and self.drop:
            y = y * torch.empty(y.shape[0], 1, 1, 1, device=y.device, dtype=y.dtype).bernoulli_(1 - self.drop).div_(1 - self.drop)
        return x + y


SHAPES = [(1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1), (6, 192, 3, 5, 2), (6, 320, 1, 3, 1)]
layers, c = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU(inplace=True)], 32
for expand, o, n, kernel, stride in SHAPES:
    for i in range(n):
        layers.append(MBConv(c, o, expand, kernel, stride if i == 0 else 1, 0.1))
        c = o
layers += [nn.Conv2d(c, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
           nn.Dropout(0.2), nn.Linear(1280, 1000)]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.016, alpha=0.9, momentum=0.9, eps=1e-3, weight_decay=1e-5)
scaler = torch.amp.GradScaler("cuda")
for step in range(8):
    images, labels = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda()
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item(), scaler.get_scale())
model.eval()
right = 0
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for i in range(3):
        images, labels = torch.randn(150 if i < 2 else 37, 3, 256, 256).cuda(), torch.randint(0, 1000, (150 if i < 2 else 37,)).cuda()
        right += (model(images).argmax(1) == labels).sum().item()
print(right)
