"""A vocoder with a loss over spectra of several resolutions, dilated convolutions with weight norm, and overlap-add by istft."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(76)


class Dilated(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.first = nn.ModuleList([weight_norm(nn.Conv1d(width, width, kernel, dilation=d, padding=d * (kernel - 1) // 2)) for d in (1, 3, 5)])
        self.second = nn.ModuleList([weight_norm(nn.Conv1d(width, width, kernel, padding=(kernel - 1) // 2)) for _ in range(3)])

    def forward(self, x):
        for a, b in zip(self.first, self.second):
            x = x + b(F.leaky_relu(a(F.leaky_relu(x, 0.1)), 0.1))
        return x


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = weight_norm(nn.Conv1d(80, 256, 7, padding=3))
        self.ups = nn.ModuleList([weight_norm(nn.ConvTranspose1d(256 >> i, 128 >> i, k, s, (k - s) // 2)) for i, (k, s) in enumerate(((16, 8), (8, 4), (4, 2)))])
        self.blocks = nn.ModuleList([nn.ModuleList([Dilated(128 >> i, k) for k in (3, 7)]) for i in range(3)])
        self.out = weight_norm(nn.Conv1d(32, 18, 7, padding=3))

    def forward(self, mel):
        x = self.stem(mel)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(b(x) for b in blocks) / len(blocks)
        size, phase = self.out(F.leaky_relu(x)).chunk(2, dim=1)
        return torch.istft(torch.exp(size.float()).clamp(max=1e2) * torch.exp(1j * torch.sin(phase.float()) * 3.14159), 16, 4, window=torch.hann_window(16, device=mel.device))


def spectrum(wave, size):
    return torch.stft(wave, size, size // 4, window=torch.hann_window(size, device=wave.device), return_complex=True).abs().clamp(min=1e-5)


model = Vocoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.8, 0.99))
for step in range(6):
    mel = torch.randn(8, 80, 96 + 32 * (step % 2)).cuda()
    made = model(mel)
    real = torch.randn(made.shape).cuda()
    loss = 0
    for size in (512, 1024, 2048):
        a, b = spectrum(made, size), spectrum(real, size)
        loss = loss + (b - a).norm() / b.norm() + F.l1_loss(a.log(), b.log())
    shift = torch.fft.irfft(torch.fft.rfft(made, dim=1) * torch.fft.rfft(real, dim=1).conj(), dim=1)
    loss = loss - 1e-4 * shift.amax(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
