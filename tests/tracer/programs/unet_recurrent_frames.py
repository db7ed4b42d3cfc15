"""A U-Net over frames whose bottleneck is a recurrent convolution with gates, in channels last: Adam, products of float32 in TF32, batches of 8 clips, gradients clipped by value, an evaluation with a larger batch at the end."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1418)
torch.set_float32_matmul_precision("high")


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU())


class GatedCell(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gates, self.new = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1), nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x, h):
        z, r = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
        return torch.lerp(h, torch.tanh(self.new(torch.cat([x, r * h], 1))), z)


class FrameUNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 192)):
        super().__init__()
        self.down = nn.ModuleList(double(i, o) for i, o in zip((3, *widths), widths))
        self.cell = GatedCell(widths[-1])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(double(2 * o, o) for o in widths[-2::-1])
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, clip):
        masks, h = [], None
        for frame in clip.unbind(1):
            x, skips = frame.contiguous(memory_format=torch.channels_last), []
            for i, block in enumerate(self.down):
                x = block(x if i == 0 else F.max_pool2d(x, 2))
                skips.append(x)
            h = self.cell(x, torch.zeros_like(x) if h is None else h)
            x = h
            for grow, block, skip in zip(self.grow, self.up, skips[-2::-1]):
                x = block(torch.cat([grow(x), skip], 1))
            masks.append(self.out(x))
        return torch.stack(masks, 1)


model = FrameUNet().to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), 5e-4)
model.train()
for step in range(5):
    clip, mask = torch.rand(8, 5, 3, 96, 128).cuda(), torch.randint(0, 2, (8, 5, 96, 128)).cuda()
    guess = model(clip)
    soft = guess.softmax(2)[:, :, 1]
    overlap = 1 - 2 * (soft * mask).sum() / (soft.sum() + mask.sum())
    loss = F.cross_entropy(guess.flatten(0, 1), mask.flatten(0, 1)) + overlap
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print(model(torch.rand(24, 5, 3, 96, 128).cuda()).argmax(2).float().mean().item())
