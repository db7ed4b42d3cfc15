"""Two voices apart: a learned filter bank, stacks of dilated depthwise convolutions with global layer norm, masks, overlap and add, the loss of the best permutation, halved rates."""
import itertools

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(402)


class Norm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(1, c, 1)), nn.Parameter(torch.zeros(1, c, 1))

    def forward(self, x):
        mean = x.mean((1, 2), keepdim=True)
        spread = (x - mean).pow(2).mean((1, 2), keepdim=True)
        return self.gain * (x - mean) / (spread + 1e-8).sqrt() + self.shift


class Layer(nn.Module):
    def __init__(self, c, h, dilation):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(c, h, 1), nn.PReLU(), Norm(h), nn.Conv1d(h, h, 3, padding=dilation, dilation=dilation, groups=h), nn.PReLU(), Norm(h))
        self.out, self.skip = nn.Conv1d(h, c, 1), nn.Conv1d(h, c, 1)

    def forward(self, x):
        y = self.net(x)
        return x + self.out(y), self.skip(y)


class Separate(nn.Module):
    def __init__(self, filters=256, kernel=16, c=96, h=192, repeats=2, depth=6, voices=2):
        super().__init__()
        self.voices = voices
        self.encode, self.decode = nn.Conv1d(1, filters, kernel, kernel // 2, bias=False), nn.ConvTranspose1d(filters, 1, kernel, kernel // 2, bias=False)
        self.enter = nn.Sequential(Norm(filters), nn.Conv1d(filters, c, 1))
        self.layers = nn.ModuleList(Layer(c, h, 2**i) for _ in range(repeats) for i in range(depth))
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(c, voices * filters, 1))

    def forward(self, x):
        f = F.relu(self.encode(x[:, None]))
        y, total = self.enter(f), 0
        for layer in self.layers:
            y, skip = layer(y)
            total = total + skip
        m = torch.sigmoid(self.mask(total)).view(len(x), self.voices, -1, f.shape[-1])
        return self.decode((m * f[:, None]).flatten(0, 1)).view(len(x), self.voices, -1)


def ratio(estimate, target):
    estimate, target = estimate - estimate.mean(-1, keepdim=True), target - target.mean(-1, keepdim=True)
    part = (estimate * target).sum(-1, keepdim=True) * target / (target.pow(2).sum(-1, keepdim=True) + 1e-8)
    return 10 * torch.log10(part.pow(2).sum(-1) / ((estimate - part).pow(2).sum(-1) + 1e-8) + 1e-8)


model = Separate().cuda()
optimizer = torch.optim.RAdam(model.parameters(), 1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
for step in range(5):
    voices = torch.randn(6, 2, (16000, 24000)[step % 2], device="cuda")
    found = model(voices.sum(1))
    voices = voices[..., :found.shape[-1]]
    each = torch.stack([sum(ratio(found[:, i], voices[:, j]) for i, j in enumerate(p)) / 2 for p in itertools.permutations(range(2))])
    loss = -each.max(0).values.mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    plateau.step(step)
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    print(model(torch.randn(1, 16000 * 8, device="cuda")).shape)
