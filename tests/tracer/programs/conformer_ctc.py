"""Speech: spectra of clips of any length, a Conformer with relative positions, CTC loss."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(68)
torch.manual_seed(68)
WIDTH, HEADS = 256, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.place, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.u, self.v = (nn.Parameter(torch.zeros(HEADS, 1, WIDTH // HEADS)) for _ in range(2))

    def forward(self, x, places, mask):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, dim=-1))
        p = self.place(places).view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2)
        by_place = (q + self.v) @ p.transpose(-2, -1)
        padded = F.pad(by_place, (1, 0)).view(b, HEADS, -1, t)[:, :, 1:].reshape(b, HEADS, t, -1)[..., :t]
        scores = ((q + self.u) @ k.transpose(-2, -1) + padded) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(mask[:, None, None], float("-inf"))
        return self.out((F.dropout(scores.softmax(-1), 0.1, self.training) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        def feed():
            return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))
        self.first, self.second, self.attention, self.norm, self.last = feed(), feed(), Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.convolution = nn.Sequential(nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.GLU(dim=1), nn.Conv1d(WIDTH, WIDTH, 31, padding=15, groups=WIDTH), nn.BatchNorm1d(WIDTH), nn.SiLU(), nn.Conv1d(WIDTH, WIDTH, 1), nn.Dropout(0.1))

    def forward(self, x, places, mask):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(x, places, mask)
        x = x + self.convolution(self.norm(x).masked_fill(mask[..., None], 0).transpose(1, 2)).transpose(1, 2)
        return self.last(x + 0.5 * self.second(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.shrink = nn.Sequential(nn.Conv2d(1, WIDTH, 3, 2), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 2), nn.ReLU())
        self.project, self.blocks, self.out = nn.Linear(WIDTH * 19, WIDTH), nn.ModuleList([Block() for _ in range(8)]), nn.Linear(WIDTH, 512)

    def forward(self, mel, lengths):
        x = self.shrink(mel.unsqueeze(1)).transpose(1, 2).flatten(2)
        x = self.project(x)
        lengths = ((lengths - 1) // 2 - 1) // 2
        mask = torch.arange(x.shape[1], device=x.device)[None] >= lengths[:, None]
        at = torch.arange(x.shape[1] - 1, -x.shape[1], -1.0, device=x.device)
        rate = torch.exp(torch.arange(0, WIDTH, 2, device=x.device) * -(9.2103 / WIDTH))
        places = torch.stack([(at[:, None] * rate).sin(), (at[:, None] * rate).cos()], dim=2).flatten(1)
        for block in self.blocks:
            x = block(x, places, mask)
        return self.out(x).log_softmax(-1), lengths


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=1e-3)
window = torch.hann_window(400, device="cuda")
bank = torch.rand(201, 80, device="cuda")
for step in range(7):
    sizes = [random.randrange(60, 480) * 160 for _ in range(14)]
    wave = nn.utils.rnn.pad_sequence([torch.randn(n) for n in sizes], batch_first=True).cuda()
    spectrum = torch.stft(wave, 400, 160, window=window, return_complex=True).abs().pow(2)
    mel = (spectrum.transpose(1, 2) @ bank).clamp(min=1e-10).log()
    mel[:, :, random.randrange(60) :][:, :, :10] = 0
    lengths = torch.tensor([n // 160 + 1 for n in sizes]).cuda()
    targets = [torch.randint(1, 512, (max(2, n // 160 // 12),)) for n in sizes]
    out, frames = model(mel, lengths)
    loss = F.ctc_loss(out.transpose(0, 1), torch.cat(targets).cuda(), frames, torch.tensor([len(t) for t in targets]).cuda(), zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
