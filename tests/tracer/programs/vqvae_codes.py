"""Images in codes: an autoencoder with a codebook that follows by moving averages, dead codes drawn again, then a prior of masked convolutions that samples."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(206)


class Residual(nn.Module):
    def __init__(self, c, inner=64):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Conv2d(c, inner, 3, 1, 1), nn.ReLU(), nn.Conv2d(inner, c, 1))

    def forward(self, x):
        return x + self.net(x)


class Codes(nn.Module):
    def __init__(self, count=1024, width=64, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("table", torch.randn(count, width))
        self.register_buffer("used", torch.ones(count))
        self.register_buffer("sums", self.table.clone())

    def forward(self, x):
        flat = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        far = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.table.t() + self.table.pow(2).sum(1)
        index = far.argmin(1)
        y = F.embedding(index, self.table).view(x.shape[0], *x.shape[2:], -1).permute(0, 3, 1, 2)
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(index, len(self.table)).float()
                self.used.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
                self.sums.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
                total = self.used.sum()
                size = (self.used + 1e-5) / (total + len(self.table) * 1e-5) * total
                self.table.copy_(self.sums / size[:, None])
                fresh = flat[torch.randint(0, len(flat), (len(self.table),), device=flat.device)]
                self.table.copy_(torch.where(self.used[:, None] < 0.01, fresh, self.table))
        return x + (y - x).detach(), F.mse_loss(x, y.detach()), index.view(x.shape[0], *x.shape[2:])


class Auto(nn.Module):
    def __init__(self, c=128, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, c // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(c // 2, c, 4, 2, 1), nn.ReLU(), nn.Conv2d(c, c, 3, 1, 1), Residual(c), Residual(c), nn.Conv2d(c, width, 1))
        self.codes = Codes(width=width)
        self.decoder = nn.Sequential(nn.Conv2d(width, c, 3, 1, 1), Residual(c), Residual(c), nn.ConvTranspose2d(c, c // 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(c // 2, 3, 4, 2, 1))

    def forward(self, x):
        z, commit, index = self.codes(self.encoder(x))
        return self.decoder(z), commit, index


class Masked(nn.Conv2d):
    def __init__(self, kind, *words, **named):
        super().__init__(*words, **named)
        mask = torch.ones_like(self.weight)
        h, w = self.kernel_size
        mask[:, :, h // 2, w // 2 + (kind == "b"):] = 0
        mask[:, :, h // 2 + 1:] = 0
        self.register_buffer("mask", mask)

    def forward(self, x):
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


class Prior(nn.Module):
    def __init__(self, count=1024, c=128, layers=6):
        super().__init__()
        self.embed, self.first = nn.Embedding(count, c), Masked("a", c, c, 7, padding=3)
        self.net = nn.ModuleList(nn.Sequential(nn.GroupNorm(8, c), nn.GELU(), Masked("b", c, 2 * c, 3, padding=1), nn.GLU(1), nn.Conv2d(c, c, 1)) for _ in range(layers))
        self.head = nn.Conv2d(c, count, 1)

    def forward(self, index):
        x = self.first(self.embed(index).permute(0, 3, 1, 2))
        for block in self.net:
            x = x + block(x)
        return self.head(x)


auto = Auto().cuda()
optimizer = torch.optim.Adam(auto.parameters(), lr=2e-4, amsgrad=True)
for step in range(8):
    x = torch.rand(32, 3, 128, 128 if step < 5 else 96).cuda()
    y, commit, _ = auto(x)
    loss = F.mse_loss(y, x) / 0.06 + 0.25 * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
auto.eval()
prior = Prior().cuda()
second = torch.optim.AdamW(prior.parameters(), lr=3e-4)
for step in range(6):
    with torch.no_grad():
        index = auto(torch.rand(24, 3, 128, 128).cuda())[2]
    loss = F.cross_entropy(prior(index), index)
    second.zero_grad()
    loss.backward()
    second.step()
    print(step, loss.item())
with torch.no_grad():
    index = torch.zeros(8, 16, 16, dtype=torch.long, device="cuda")
    for place in range(40):
        i, j = divmod(place, 16)
        index[:, i, j] = torch.multinomial(prior(index)[:, :, i, j].softmax(1), 1).squeeze(1)
    picture = auto.decoder(F.embedding(index, auto.codes.table).permute(0, 3, 1, 2))
print(picture.shape)
