"""A U-Net in three dimensions as nnU-Net's: instance norm, leaky ReLU, deep supervision, Dice with cross entropy, SGD with Nesterov and a polynomial rate, float16, then a sliding window with a Gaussian."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1217)
WIDTHS = (32, 64, 128, 256, 320)


def two(i, o, stride=1):
    return nn.Sequential(nn.Conv3d(i, o, 3, stride, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True), nn.Conv3d(o, o, 3, 1, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True))


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.down = nn.ModuleList(two(i, o, 1 if k == 0 else 2) for k, (i, o) in enumerate(zip((1, *WIDTHS), WIDTHS)))
        self.up = nn.ModuleList(nn.ConvTranspose3d(i, o, 2, 2, bias=False) for i, o in zip(WIDTHS[:0:-1], WIDTHS[-2::-1]))
        self.join = nn.ModuleList(two(2 * o, o) for o in WIDTHS[-2::-1])
        self.out = nn.ModuleList(nn.Conv3d(o, classes, 1, bias=False) for o in WIDTHS[-2::-1])

    def forward(self, x):
        kept = []
        for d in self.down:
            x = d(x)
            kept.append(x)
        outs = []
        for up, join, out, skip in zip(self.up, self.join, self.out, kept[-2::-1]):
            x = join(torch.cat([up(x), skip], 1))
            outs.append(out(x))
        return outs[::-1]


def criterion(logits, y):
    p = logits.softmax(1)
    hot = torch.zeros_like(p).scatter_(1, y[:, None], 1)
    both, sizes = (p * hot).sum((0, 2, 3, 4)), (p + hot).sum((0, 2, 3, 4))
    return F.cross_entropy(logits, y) - ((2 * both + 1e-5) / (sizes + 1e-5))[1:].mean()


net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
rate = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=50, power=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
weights = [1, 0.5, 0.25, 0]
for step in range(6):
    x, y = torch.randn(2, 1, 96, 96, 80).cuda(non_blocking=True), torch.randint(0, 4, (2, 96, 96, 80)).cuda(non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.float16):
        outs = net(x)
        targets = [y] + [y[:, ::2 ** k, ::2 ** k, ::2 ** k] for k in (1, 2, 3)]
        loss = sum(w * criterion(o.float(), t) for w, o, t in zip(weights, outs, targets) if w)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 12)
    scaler.step(optimizer)
    scaler.update()
    rate.step()
    print(step, loss.item())
net.eval()
volume = torch.randn(1, 1, 160, 144, 112, device="cuda")
axes = [torch.exp(-((torch.arange(n, device="cuda") - n / 2) / (n / 8)) ** 2 / 2) for n in (96, 96, 80)]
bell = axes[0][:, None, None] * axes[1][:, None] * axes[2]
total, count = torch.zeros(4, 160, 144, 112, device="cuda"), torch.zeros(160, 144, 112, device="cuda")
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for a in (0, 64):
        for b in (0, 48):
            for c in (0, 32):
                piece = volume[:, :, a:a + 96, b:b + 96, c:c + 80]
                p = net(piece)[0] + net(piece.flip(2))[0].flip(2)
                total[:, a:a + 96, b:b + 96, c:c + 80] += p[0] * bell
                count[a:a + 96, b:b + 96, c:c + 80] += bell
print((total / count).argmax(0).float().mean().item())
