"""A 3-D U-Net on patches of a volume: instance norm, transposed convolutions, deep supervision, Dice loss, checkpoints."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(67)


def block(inside, outside, stride=1):
    return nn.Sequential(nn.Conv3d(inside, outside, 3, stride, 1), nn.InstanceNorm3d(outside, affine=True), nn.LeakyReLU(0.01, True),
                         nn.Conv3d(outside, outside, 3, 1, 1), nn.InstanceNorm3d(outside, affine=True), nn.LeakyReLU(0.01, True))


class UNet(nn.Module):
    def __init__(self, widths=(24, 48, 96, 192)):
        super().__init__()
        self.down = nn.ModuleList([block(4 if i == 0 else widths[i - 1], w, 1 if i == 0 else 2) for i, w in enumerate(widths)])
        pairs = list(zip(widths[::-1], widths[-2::-1]))
        self.up = nn.ModuleList([nn.ConvTranspose3d(a, b, 2, 2) for a, b in pairs])
        self.join = nn.ModuleList([block(2 * b, b) for _, b in pairs])
        self.heads = nn.ModuleList([nn.Conv3d(b, 4, 1) for _, b in pairs])

    def forward(self, x):
        kept = []
        for stage in self.down:
            x = checkpoint(stage, x, use_reentrant=False) if self.training else stage(x)
            kept.append(x)
        outs = []
        for up, join, head, skip in zip(self.up, self.join, self.heads, kept[-2::-1]):
            x = join(torch.cat([up(x), skip], dim=1))
            outs.append(head(x))
        return outs[::-1]


def dice(logits, label):
    p = logits.float().softmax(1)
    t = F.one_hot(label, 4).permute(0, 4, 1, 2, 3).float()
    return 1 - ((2 * (p * t).sum((2, 3, 4)) + 1e-5) / (p.sum((2, 3, 4)) + t.sum((2, 3, 4)) + 1e-5)).mean()


model = UNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
for step in range(5):
    side = 96 if step % 2 else 80
    volume = torch.randn(2, 4, side, side, side).cuda()
    label = torch.randint(0, 4, (2, side, side, side)).cuda()
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        outs = model(volume)
        loss = 0
        for i, out in enumerate(outs):
            small = F.interpolate(label[:, None].float(), size=out.shape[2:], mode="nearest")[:, 0].long()
            loss = loss + 0.5**i * (F.cross_entropy(out, small) + dice(out, small))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 12)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    print(model(torch.randn(1, 4, 160, 160, 128, device="cuda"))[0].argmax(1).float().mean().item())
