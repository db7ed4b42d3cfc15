"""A picture in another's style: a frozen VGG of torchvision, Gram matrices of hooked layers, total variation, an image optimized with LBFGS and then a fast network trained for the same style."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(304)
vgg = torchvision.models.vgg16(weights=None).features[:23].cuda().eval().requires_grad_(False)
for i, layer in enumerate(vgg):
    if isinstance(layer, nn.ReLU):
        vgg[i] = nn.ReLU(inplace=False)
LAYERS = (3, 8, 15, 22)
kept = {}
for i in LAYERS:
    vgg[i].register_forward_hook(lambda module, args, out, i=i: kept.__setitem__(i, out))


def gram(x):
    b, c, h, w = x.shape
    f = x.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


def look(x):
    vgg(x)
    return [kept[i] for i in LAYERS]


content, style = torch.rand(1, 3, 256, 256, device="cuda"), torch.rand(1, 3, 256, 256, device="cuda")
with torch.no_grad():
    wanted, grams = look(content)[2], [gram(f) for f in look(style)]
picture = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([picture], max_iter=6, history_size=10)
for step in range(3):
    def closure():
        optimizer.zero_grad()
        found = look(picture)
        loss = F.mse_loss(found[2], wanted) + 1e4 * sum(F.mse_loss(gram(f), g) for f, g in zip(found, grams))
        loss = loss + 1e-4 * (picture.diff(dim=-1).abs().sum() + picture.diff(dim=-2).abs().sum())
        loss.backward()
        return loss
    optimizer.step(closure)
    with torch.no_grad():
        picture.clamp_(0, 1)
    print("picture", step)
del optimizer


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c, affine=True), nn.ReLU(), nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c, affine=True))

    def forward(self, x):
        return x + self.net(x)


def down(c, o, k, s):
    return [nn.ReflectionPad2d(k // 2), nn.Conv2d(c, o, k, s), nn.InstanceNorm2d(o, affine=True), nn.ReLU()]


net = nn.Sequential(*down(3, 32, 9, 1), *down(32, 64, 3, 2), *down(64, 128, 3, 2), *[Residual(128) for _ in range(5)],
                    nn.Upsample(scale_factor=2), *down(128, 64, 3, 1), nn.Upsample(scale_factor=2), *down(64, 32, 3, 1),
                    nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9)).cuda()
fast = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(5):
    x = torch.rand(6, 3, 192 + 32 * (step % 2), 192, device="cuda")
    y = net(x)
    found = look(y)
    with torch.no_grad():
        same = look(x)[2]
    loss = F.mse_loss(found[2], same) + 1e5 * sum(F.mse_loss(gram(f), g.expand(len(x), -1, -1)) for f, g in zip(found, grams))
    fast.zero_grad(set_to_none=False)
    loss.backward()
    fast.step()
    print(step, loss.item())
with torch.no_grad():
    print(net(torch.rand(1, 3, 512, 512, device="cuda")).shape)
