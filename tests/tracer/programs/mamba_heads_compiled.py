"""A language model of Mamba layers whose heads have a scalar decay, the scan written with products in chunks, compiled and with checkpointing: fused AdamW, float32, each epoch ends with a small batch, gradients clipped by value."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1619)
D, INNER, HEADS, STATE, CHUNK, DEPTH, V, T = 384, 768, 12, 32, 64, 6, 10000, 512


def scan(x, log_decay, b, c):
    """h' = exp(log_decay) h + b x, y = c h for each head: within chunks by masked products, between them by their states."""
    n, length, heads, wide = x.shape
    parts = length // CHUNK
    x, log_decay, b, c = (z.unflatten(1, (parts, CHUNK)) for z in (x, log_decay, b, c))
    total = log_decay.cumsum(2).permute(0, 1, 3, 2)
    mask = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).tril()
    decay = torch.exp((total[..., :, None] - total[..., None, :]).masked_fill(~mask, -float("inf")))
    within = torch.einsum("npis,npjs,nphij,npjhd->npihd", c, b, decay, x)
    left = torch.exp(total[..., -1:] - total)
    states = torch.einsum("npjs,nphj,npjhd->nphds", b, left, x)
    carried, state = [], torch.zeros_like(states[:, 0])
    for i in range(parts):
        carried.append(state)
        state = state * torch.exp(total[:, i, :, -1])[..., None, None] + states[:, i]
    before = torch.einsum("npis,nphi,nphds->npihd", c, torch.exp(total), torch.stack(carried, 1))
    return (within + before).flatten(1, 2)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inside = nn.RMSNorm(D), nn.Linear(D, 2 * INNER + 2 * STATE + HEADS, bias=False)
        self.conv = nn.Conv1d(INNER + 2 * STATE, INNER + 2 * STATE, 4, groups=INNER + 2 * STATE, padding=3)
        self.a, self.bias, self.skip = nn.Parameter(torch.linspace(0.0, 2.5, HEADS)), nn.Parameter(torch.zeros(HEADS) - 3), nn.Parameter(torch.ones(HEADS))
        self.last, self.outside = nn.RMSNorm(INNER), nn.Linear(INNER, D, bias=False)

    def forward(self, x):
        gate, y, dt = self.inside(self.norm(x)).split((INNER, INNER + 2 * STATE, HEADS), -1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        y, b, c = y.split((INNER, STATE, STATE), -1)
        y, dt = y.unflatten(-1, (HEADS, -1)), F.softplus(dt + self.bias)
        y = scan(y * dt[..., None], -dt * torch.exp(self.a), b, c) + y * self.skip[:, None]
        return x + self.outside(self.last(y.flatten(2) * F.silu(gate)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.norm = nn.Embedding(V, D), nn.ModuleList(Layer() for _ in range(DEPTH)), nn.RMSNorm(D)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return F.linear(self.norm(x), self.words.weight)


model = Model().cuda()
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 6e-4, fused=True)
model.train()
for epoch in range(2):
    for batch in (12, 12, 12, 5):
        ids = torch.randint(0, V, (batch, T + 1)).cuda()
        loss = F.cross_entropy(fast(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
    print(epoch, loss.item())
