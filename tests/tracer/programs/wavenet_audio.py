"""A WaveNet: dilated causal convolutions with gates, skips and a local condition that is stretched, classes of a mu law; samples are drawn one by one from queues of past inputs."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1014)
C, SKIP, LEVELS = 96, 192, 256


class Layer(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.dilation = dilation
        self.gate, self.condition, self.out, self.skip = nn.Conv1d(C, 2 * C, 2, dilation=dilation), nn.Conv1d(80, 2 * C, 1), nn.Conv1d(C, C, 1), nn.Conv1d(C, SKIP, 1)

    def forward(self, x, condition, past=None):
        x_in = F.pad(x, (self.dilation, 0)) if past is None else torch.cat([past, x], -1)
        a, b = (self.gate(x_in) + self.condition(condition)).chunk(2, 1)
        y = torch.tanh(a) * torch.sigmoid(b)
        return x + self.out(y), self.skip(y)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(LEVELS, C)
        self.layers = nn.ModuleList(Layer(2**i) for _ in range(2) for i in range(8))
        self.stretch = nn.Sequential(nn.ConvTranspose1d(80, 80, 32, 16, 8), nn.LeakyReLU(0.4), nn.ConvTranspose1d(80, 80, 32, 16, 8), nn.LeakyReLU(0.4))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(SKIP, SKIP, 1), nn.ReLU(), nn.Conv1d(SKIP, LEVELS, 1))

    def forward(self, codes, spectrum):
        x, condition, total = self.table(codes).transpose(1, 2), self.stretch(spectrum), 0
        for layer in self.layers:
            x, skip = layer(x, condition)
            total = total + skip
        return self.head(total)


def encode(wave):
    return ((torch.sign(wave) * torch.log1p(255 * wave.abs()) / 5.545 + 1) / 2 * 255 + 0.5).long().clamp(0, 255)


net = WaveNet().cuda()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
average = [p.detach().clone() for p in net.parameters()]
for step in range(7):
    frames = (32, 24, 40)[step % 3]
    codes, spectrum = encode(torch.rand(6, 256 * frames) * 2 - 1).cuda(), torch.randn(6, 80, frames).cuda()
    loss = F.cross_entropy(net(codes, spectrum)[..., :-1], codes[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch._foreach_lerp_(average, list(net.parameters()), 0.01)
    print(step, loss.item())
with torch.no_grad():
    condition = net.stretch(torch.randn(8, 80, 2, device="cuda"))
    queues = [torch.zeros(8, C, layer.dilation, device="cuda") for layer in net.layers]
    code, drawn = torch.full((8, 1), 128, device="cuda"), []
    for t in range(64):
        x, total = net.table(code).transpose(1, 2), 0
        for i, layer in enumerate(net.layers):
            old = torch.cat([queues[i], x], -1)
            x, skip = layer(x, condition[..., t : t + 1], queues[i])
            queues[i] = old[..., 1:]
            total = total + skip
        code = torch.multinomial(net.head(total)[..., 0].softmax(-1), 1)
        drawn.append(code)
    print(torch.cat(drawn, 1).float().mean().item())
