"""Four stems from a mixture of music as Demucs does: strided convolutions over samples, gated, a bidirectional LSTM below, transposed convolutions, losses of samples and of spectra, then a long song in overlapping pieces."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1218)


class Demucs(nn.Module):
    def __init__(self, start=48, depth=5, stems=4):
        super().__init__()
        self.stems, self.enc, self.dec = stems, nn.ModuleList(), nn.ModuleList()
        channels, width = 2, start
        for i in range(depth):
            self.enc.append(nn.Sequential(nn.Conv1d(channels, width, 8, 4), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.GLU(1)))
            out = 2 * stems if i == 0 else channels
            self.dec.insert(0, nn.Sequential(nn.Conv1d(width, 2 * width, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(width, out, 8, 4), *([nn.ReLU()] if i else [])))
            channels, width = width, 2 * width
        self.lstm, self.back = nn.LSTM(channels, channels, 2, bidirectional=True), nn.Linear(2 * channels, channels)

    def forward(self, x):
        n, scale = x.shape[-1], x.std((1, 2), keepdim=True) + 1e-5
        x, kept = F.pad(x / scale, (0, self.good(n) - n)), []
        for e in self.enc:
            x = e(x)
            kept.append(x)
        y, _ = self.lstm(x.permute(2, 0, 1))
        x = self.back(y).permute(1, 2, 0)
        for d in self.dec:
            x = d(x + kept.pop()[..., :x.shape[-1]])
        return x.view(len(x), self.stems, 2, -1)[..., :n] * scale[:, None]

    def good(self, n):
        for _ in self.enc:
            n = max(1, -(-(n - 8) // 4) + 1)
        for _ in self.enc:
            n = (n - 1) * 4 + 8
        return n


def spectra(x, size):
    return torch.stft(x.reshape(-1, x.shape[-1]), size, size // 4, window=torch.hann_window(size, device=x.device), return_complex=True).abs()


net = Demucs().cuda()
optimizer = torch.optim.Adam(net.parameters(), 3e-4)
for step in range(6):
    stems = torch.randn(8, 4, 2, 88200).cuda() * 0.1
    stems = torch.stack([stems[torch.randperm(8, device="cuda"), k] for k in range(4)], 1)
    guess = net(stems.sum(1))
    loss = F.l1_loss(guess, stems) + 0.1 * sum(F.l1_loss(spectra(guess, s), spectra(stems, s)) for s in (512, 2048))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
net.eval()
song, piece, hop = torch.randn(1, 2, 44100 * 12) * 0.1, 44100 * 4, 44100 * 3
total, count = torch.zeros(4, 2, song.shape[-1], device="cuda"), torch.zeros(song.shape[-1], device="cuda")
with torch.no_grad():
    for a in range(0, song.shape[-1], hop):
        x = song[..., a:a + piece].cuda()
        ramp = torch.linspace(1, 0.1, x.shape[-1], device="cuda")
        total[..., a:a + piece] += net(x)[0] * ramp
        count[a:a + piece] += ramp
print((total / count).abs().mean().item())
