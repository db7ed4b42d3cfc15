"""A vocoder against critics: transposed convolutions with weight norm and fused kernels of several dilations, critics of periods and of scales, feature matching and mel spectra."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(302)


class Fusion(nn.Module):
    def __init__(self, c, kernels=(3, 7, 11), dilations=(1, 3, 5)):
        super().__init__()
        self.branches = nn.ModuleList(nn.ModuleList(nn.ModuleList([
            weight_norm(nn.Conv1d(c, c, k, padding=d * (k - 1) // 2, dilation=d)), weight_norm(nn.Conv1d(c, c, k, padding=(k - 1) // 2))])
            for d in dilations) for k in kernels)

    def forward(self, x):
        total = 0
        for branch in self.branches:
            y = x
            for a, b in branch:
                y = y + b(F.leaky_relu(a(F.leaky_relu(y, 0.1)), 0.1))
            total = total + y
        return total / len(self.branches)


class Generator(nn.Module):
    def __init__(self, mels=80, c=192):
        super().__init__()
        layers = [weight_norm(nn.Conv1d(mels, c, 7, padding=3))]
        for rate, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
            layers += [nn.LeakyReLU(0.1), weight_norm(nn.ConvTranspose1d(c, c // 2, kernel, rate, (kernel - rate) // 2)), Fusion(c // 2)]
            c //= 2
        self.net = nn.Sequential(*layers, nn.LeakyReLU(0.1), weight_norm(nn.Conv1d(c, 1, 7, padding=3)), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Period(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period, widths = period, (1, 32, 96, 192, 256)
        self.layers = nn.ModuleList([weight_norm(nn.Conv2d(a, b, (5, 1), (3, 1), (2, 0))) for a, b in zip(widths, widths[1:])])
        self.last = weight_norm(nn.Conv2d(widths[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, x):
        left = -x.shape[-1] % self.period
        x = F.pad(x, (0, left), "reflect").view(x.shape[0], 1, -1, self.period)
        kept = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            kept.append(x)
        return self.last(x).flatten(1), kept


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        spec = ((1, 64, 15, 1, 1), (64, 64, 41, 2, 4), (64, 128, 41, 2, 16), (128, 256, 41, 4, 16), (256, 256, 5, 1, 1))
        self.layers = nn.ModuleList([weight_norm(nn.Conv1d(a, b, k, s, k // 2, groups=g)) for a, b, k, s, g in spec])
        self.last = weight_norm(nn.Conv1d(256, 1, 3, 1, 1))

    def forward(self, x):
        kept = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            kept.append(x)
        return self.last(x).flatten(1), kept


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.periods, self.scales, self.pool = nn.ModuleList(Period(p) for p in (2, 3, 5, 7)), nn.ModuleList(Scale() for _ in range(2)), nn.AvgPool1d(4, 2, 2)

    def forward(self, x):
        found = [p(x) for p in self.periods]
        for s in self.scales:
            found.append(s(x))
            x = self.pool(x)
        return found


filters = torch.rand(80, 513, device="cuda")
window = torch.hann_window(1024, device="cuda")


def mel(x):
    return torch.log((filters @ torch.stft(x.squeeze(1), 1024, 256, window=window, return_complex=True).abs()).clamp(min=1e-5))


generator, critics = Generator().cuda(), Critics().cuda()
g = torch.optim.AdamW(generator.parameters(), 2e-4, betas=(0.8, 0.99))
d = torch.optim.AdamW(critics.parameters(), 2e-4, betas=(0.8, 0.99))
for step in range(5):
    real = torch.rand(8, 1, 8192, device="cuda") * 2 - 1
    fake = generator(mel(real)[:, :, :-1])
    d.zero_grad()
    loss_d = sum((1 - a[0]).pow(2).mean() + b[0].pow(2).mean() for a, b in zip(critics(real), critics(fake.detach())))
    loss_d.backward()
    d.step()
    g.zero_grad()
    both = list(zip(critics(real), critics(fake)))
    loss_g = 45 * F.l1_loss(mel(fake), mel(real)) + sum((1 - b[0]).pow(2).mean() for _, b in both)
    loss_g = loss_g + 2 * sum((x.detach() - y).abs().mean() for a, b in both for x, y in zip(a[1], b[1]))
    loss_g.backward()
    g.step()
    print(step, loss_d.item(), loss_g.item())
with torch.inference_mode():
    print(generator(torch.randn(1, 80, 400, device="cuda")).shape)
