"""A selective state space model (Mamba-like) with the scan as a loop in Python."""
import torch
from torch import nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, width, state=16, conv=4):
        super().__init__()
        inner = 2 * width
        self.inner, self.state, self.rank = inner, state, width // 16
        self.into = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, conv, groups=inner, padding=conv - 1)
        self.params = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.delta = nn.Linear(self.rank, inner)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1, dtype=torch.float32).repeat(inner, 1)))
        self.d = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, u):
        b, length, _ = u.shape
        x, gate = self.into(u).chunk(2, dim=-1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        dt, bm, cm = self.params(x).split([self.rank, self.state, self.state], dim=-1)
        dt = F.softplus(self.delta(dt))
        da = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.log_a))
        dbx = dt.unsqueeze(-1) * bm.unsqueeze(2) * x.unsqueeze(-1)
        h = torch.zeros(b, self.inner, self.state, device=u.device)
        ys = []
        for i in range(length):
            h = da[:, i] * h + dbx[:, i]
            ys.append(torch.einsum("bdn,bn->bd", h, cm[:, i]))
        y = torch.stack(ys, dim=1) + x * self.d
        return self.out(y * F.silu(gate))


class Model(nn.Module):
    def __init__(self, vocab=16000, width=512, layers=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])
        self.mixers = nn.ModuleList([Mixer(width) for _ in range(layers)])
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return self.head(x)


torch.manual_seed(12)
model = Model().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    ids = torch.randint(0, 16000, (12, 160 if step % 2 else 112), device="cuda")
    loss = F.cross_entropy(model(ids)[:, :-1].reshape(-1, 16000), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", loss.item())
