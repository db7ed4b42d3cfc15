"""A GPT with rotary positions, squared ReLU and values mixed from the first layer, trained by Muon: Newton-Schulz products of momenta in bfloat16, Adam for the rest."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1001)
D, HEADS, WORDS, LENGTH = 512, 8, 16384, 768


def orthogonal(g, rounds=5):
    x = g.bfloat16() / (g.norm() + 1e-7)
    turned = x.shape[0] > x.shape[1]
    x = x.T if turned else x
    for _ in range(rounds):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if turned else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                p.add_(orthogonal(p.grad.lerp(m, group["momentum"])), alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.up, self.down = nn.Linear(D, 4 * D, bias=False), nn.Linear(4 * D, D, bias=False)
        self.mix = nn.Parameter(torch.tensor([0.5, 0.5]))

    def forward(self, x, first, cos, sin):
        q, k, v = self.qkv(F.rms_norm(x, (D,))).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        v = v if first is None else self.mix[0] * v + self.mix[1] * first
        q, k = (rotate(F.rms_norm(t, (t.shape[-1],)), cos, sin) for t in (q, k))
        y = F.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (D,)))).square()), v if first is None else first


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks, self.head = nn.Embedding(WORDS, D), nn.ModuleList(Block() for _ in range(8)), nn.Linear(D, WORDS, bias=False)
        angle = torch.outer(torch.arange(LENGTH).float(), 1 / 10000 ** (torch.arange(0, D // HEADS // 2) / (D // HEADS // 2)))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids):
        x, first = F.rms_norm(self.words(ids), (D,)), None
        for b in self.blocks:
            x, first = b(x, first, self.cos[: ids.shape[1]], self.sin[: ids.shape[1]])
        return 15 * torch.tanh(self.head(F.rms_norm(x, (D,))) / 15)


net = Net().cuda()
matrices = [p for b in net.blocks for p in b.parameters() if p.ndim == 2]
rest = [p for n, p in net.named_parameters() if p.ndim != 2 or not n.startswith("blocks")]
muon, adam = Muon(matrices), torch.optim.Adam(rest, 3e-4, betas=(0.8, 0.95), fused=True)
for step in range(8):
    ids = torch.randint(0, WORDS, (4 if step % 3 else 6, LENGTH + 1), device="cuda")
    for part in ids.split(2):
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(net(part[:, :-1]).float().flatten(0, 1), part[:, 1:].flatten())
        loss.backward()
    muon.step()
    adam.step()
    net.zero_grad()
    print(step, loss.item())
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for length in (384, 512, 768):
        print(length, net(torch.randint(0, WORDS, (3, length), device="cuda")).float().logsumexp(-1).mean().item())
