"""A temporal convolutional network forecasts many series: dilated causal filters with weight norm, quantiles, horizons of several lengths."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(202)
SERIES, LENGTH, QUANTILES = 400, 6000, (0.1, 0.5, 0.9)


class Block(nn.Module):
    def __init__(self, c, o, dilation, kernel=5, p=0.1):
        super().__init__()
        self.pad = (kernel - 1) * dilation
        self.one, self.two = (weight_norm(nn.Conv1d(a, o, kernel, dilation=dilation)) for a in (c, o))
        self.drop, self.skip = nn.Dropout1d(p), nn.Conv1d(c, o, 1) if c != o else None

    def forward(self, x):
        h = self.drop(F.elu(self.one(F.pad(x, (self.pad, 0)))))
        h = self.drop(F.elu(self.two(F.pad(h, (self.pad, 0)))))
        return F.elu(h + (x if self.skip is None else self.skip(x)))


class Forecast(nn.Module):
    def __init__(self, width=160, levels=8):
        super().__init__()
        self.series, self.hour = nn.Embedding(SERIES, 32), nn.Embedding(24, 8)
        self.net = nn.Sequential(*[Block(41 if i == 0 else width, width, 2**i) for i in range(levels)])
        self.head = nn.Linear(width, len(QUANTILES))

    def forward(self, values, hours, which):
        x = torch.cat([values[:, None], self.hour(hours).transpose(1, 2), self.series(which)[:, :, None].expand(-1, -1, values.shape[1])], 1)
        return self.head(self.net(x).transpose(1, 2))


def pinball(found, target):
    q = torch.tensor(QUANTILES, device=found.device)
    miss = target[..., None] - found
    return torch.maximum(q * miss, (q - 1) * miss).mean()


data = torch.randn(SERIES, LENGTH).cumsum(1) * 0.05
data = ((data - data.mean(1, keepdim=True)) / data.std(1, keepdim=True)).cuda()
clock = (torch.arange(LENGTH) % 24).cuda()
model = Forecast().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
for epoch in range(3):
    model.train()
    for step in range(5):
        length = (720, 1024, 900, 1441, 512)[step]
        which, begin = torch.randint(0, SERIES, (96,)).cuda(), torch.randint(0, LENGTH - length - 1, (96, 1)).cuda()
        at = begin + torch.arange(length + 1, device="cuda")
        window, hours = data[which[:, None], at], clock[at]
        loss = pinball(model(window[:, :-1], hours[:, :-1], which), window[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        history = data[:, -1200:-24].clone()
        for ahead in range(6):  # one step after another from its own median
            found = model(history[:, -600:], clock[-600:].expand(SERIES, -1), torch.arange(SERIES, device="cuda"))[:, -1, 1]
            history = torch.cat([history, found[:, None]], 1)
        error = (history[:, -6:] - data[:, -24:-18]).abs().mean()
    plateau.step(error.item())
    print(epoch, loss.item(), error.item())
