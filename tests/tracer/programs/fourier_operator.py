"""A Fourier neural operator: real FFTs, complex weights, einsum over modes, a loss in frequencies."""
import torch
import torch.nn.functional as F
from torch import nn


class Spectral(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        shape = (width, width, modes, modes)
        self.low = nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / width**2)
        self.high = nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / width**2)

    def forward(self, x):
        m, f = self.modes, torch.fft.rfft2(x)
        out = torch.zeros(x.shape[0], x.shape[1], x.shape[2], x.shape[3] // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Operator(nn.Module):
    def __init__(self, width=48, modes=16, layers=4):
        super().__init__()
        self.lift, self.project = nn.Conv2d(3, width, 1), nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))
        self.spectral = nn.ModuleList(Spectral(width, modes) for _ in range(layers))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))

    def forward(self, x):
        grid = torch.stack(torch.meshgrid(torch.linspace(0, 1, x.shape[2], device=x.device),
                                          torch.linspace(0, 1, x.shape[3], device=x.device), indexing="ij"))
        x = self.lift(torch.cat([x, grid.expand(len(x), -1, -1, -1)], dim=1))
        for spectral, local in zip(self.spectral, self.local):
            x = F.gelu(spectral(x) + local(x))
        return self.project(x)


torch.manual_seed(33)
model = Operator().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    size = (96, 128, 150)[step % 3]
    x, y = torch.randn(16, 1, size, size, device="cuda"), torch.randn(16, 1, size, size, device="cuda")
    out = model(x)
    loss = (out - y).norm() / y.norm() + 0.01 * (torch.fft.fft2(out) - torch.fft.fft2(y)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
