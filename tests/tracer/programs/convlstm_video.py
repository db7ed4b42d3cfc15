"""The next frames of a video: two layers of a convolutional LSTM unrolled in Python, scheduled sampling, a loss over pixels and gradients."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(203)
torch.manual_seed(203)


class Cell(nn.Module):
    def __init__(self, c, hidden, kernel=5):
        super().__init__()
        self.hidden = hidden
        self.gates, self.norm = nn.Conv2d(c + hidden, 4 * hidden, kernel, padding=kernel // 2), nn.GroupNorm(4, 4 * hidden)

    def forward(self, x, state):
        if state is None:
            state = [x.new_zeros(x.shape[0], self.hidden, *x.shape[2:]) for _ in range(2)]
        h, c = state
        i, f, o, g = self.norm(self.gates(torch.cat([x, h], 1))).chunk(4, 1)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Predictor(nn.Module):
    def __init__(self, widths=(64, 96)):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(32, 48, 3, 1, 1), nn.LeakyReLU(0.1))
        self.cells = nn.ModuleList(Cell(c, h) for c, h in zip((48, *widths), widths))
        self.leave = nn.Sequential(nn.Conv2d(widths[-1], 48, 3, 1, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(24, 1, 1))

    def forward(self, frames, ahead, real):
        states, found, frame = [None] * len(self.cells), [], None
        for t in range(frames.shape[1] - 1 if self.training else frames.shape[1] + ahead - 1):
            first = t < frames.shape[1] - ahead if self.training else t < frames.shape[1]
            x = self.enter(frames[:, t] if first or self.training and random.random() < real else frame)
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            frame = self.leave(x).sigmoid()
            found.append(frame)
        return torch.stack(found, 1)


def edges(v):
    return v.diff(dim=-1), v.diff(dim=-2)


model = Predictor().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4, momentum=0.9)
for step in range(7):
    video = torch.rand(8, 12, 1, 64, 64 if step % 3 else 80).cuda()
    found = model(video, 6, 0.9 - 0.1 * step)
    target = video[:, 1:]
    loss = F.binary_cross_entropy(found, target) + sum((a - b).abs().mean() for a, b in zip(edges(found), edges(target)))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    for _ in range(2):
        film = model(torch.rand(20, 10, 1, 64, 64).cuda(), 10, 0)
        print(film.shape, film[:, -1].mean().item())
