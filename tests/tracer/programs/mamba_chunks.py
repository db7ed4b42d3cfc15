"""State spaces in chunks (Mamba-2-like): a causal depthwise convolution, decays within chunks as matrices, states passed between chunks, gated norm, bfloat16 autocast."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(811)
D, INNER, HEADS, STATE, CHUNK = 512, 1024, 16, 64, 64


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(D, 2 * INNER + 2 * STATE + HEADS, bias=False)
        self.conv = nn.Conv1d(INNER + 2 * STATE, INNER + 2 * STATE, 4, groups=INNER + 2 * STATE, padding=3)
        self.decay, self.bias, self.skip = nn.Parameter(torch.zeros(HEADS)), nn.Parameter(torch.zeros(HEADS)), nn.Parameter(torch.ones(HEADS))
        self.norm, self.out = nn.RMSNorm(INNER), nn.Linear(INNER, D, bias=False)

    def forward(self, u):
        b, n, _ = u.shape
        z, x, dt = self.into(u).split([INNER, INNER + 2 * STATE, HEADS], -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :n].transpose(1, 2))
        x, B, C = x.split([INNER, STATE, STATE], -1)
        dt = F.softplus(dt.float() + self.bias)
        x = x.reshape(b, n // CHUNK, CHUNK, HEADS, -1)
        B, C = (t.reshape(b, n // CHUNK, CHUNK, STATE) for t in (B, C))
        a = (-torch.exp(self.decay) * dt).view(b, n // CHUNK, CHUNK, HEADS)
        v = x * dt.view(b, n // CHUNK, CHUNK, HEADS, 1).to(x.dtype)
        total = a.cumsum(2)
        within = total[:, :, :, None] - total[:, :, None]
        mask = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=u.device).tril()
        within = within.masked_fill(~mask[:, :, None], float("-inf")).exp()
        y = torch.einsum("bcin,bcjn,bcijh,bcjhp->bcihp", C.float(), B.float(), within, v.float())
        states = torch.einsum("bcjn,bcjh,bcjhp->bchpn", B.float(), (total[:, :, -1:] - total).exp(), v.float())
        state, outs = torch.zeros_like(states[:, 0]), []
        for c in range(n // CHUNK):
            outs.append(torch.einsum("bin,bhpn,bih->bihp", C[:, c].float(), state, total[:, c].exp()))
            state = state * total[:, c, -1].exp()[..., None, None] + states[:, c]
        y = y + torch.stack(outs, 1) + x.float() * self.skip[:, None]
        return self.out(self.norm(y.reshape(b, n, INNER).to(z.dtype) * F.silu(z)))


class Net(nn.Module):
    def __init__(self, words=10000, layers=6):
        super().__init__()
        self.words, self.mixers, self.norms = nn.Embedding(words, D), nn.ModuleList(Mixer() for _ in range(layers)), nn.ModuleList(nn.RMSNorm(D) for _ in range(layers + 1))

    def forward(self, ids):
        x = self.words(ids)
        for m, n in zip(self.mixers, self.norms):
            x = x + m(n(x))
        return F.linear(self.norms[-1](x), self.words.weight)


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), 3e-4, weight_decay=0.1, foreach=True)
for step in range(5):
    ids = torch.randint(0, 10000, (6, 513)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.float().view(-1, 10000), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
