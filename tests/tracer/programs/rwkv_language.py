"""A language model without attention: token shift, linear attention with decay in chunks, squared ReLU, then generation from its states."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(204)


def shifted(x, last=None):
    return torch.cat([torch.zeros_like(x[:, :1]) if last is None else last, x[:, :-1]], 1)


class Time(nn.Module):
    def __init__(self, width, heads, chunk=64):
        super().__init__()
        self.heads, self.chunk = heads, chunk
        self.mix = nn.Parameter(torch.rand(4, width))
        self.r, self.k, self.v, self.g, self.out = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.decay, self.bonus = nn.Parameter(torch.linspace(-3, 1, heads)), nn.Parameter(torch.zeros(heads, width // heads))
        self.norm = nn.GroupNorm(heads, width)

    def forward(self, x, state=None):
        b, t, c = x.shape
        back = shifted(x, None if state is None else state[0])
        r, k, v, g = (f(torch.lerp(back, x, m)) for f, m in zip((self.r, self.k, self.v, self.g), self.mix))
        r, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (r, k, v))
        w = torch.exp(-torch.exp(self.decay.float()))
        kv = x.new_zeros(b, self.heads, c // self.heads, c // self.heads, dtype=torch.float32) if state is None else state[1]
        n, y = min(self.chunk, t), []
        i = torch.arange(n, device=x.device)
        inner = torch.where(i[:, None] > i, w[:, None, None] ** (i[:, None] - i - 1).clamp(min=0), 0.0)
        for rc, kc, vc in zip(r.split(n, 2), k.split(n, 2), v.split(n, 2)):
            m = rc.shape[2]
            a = rc.float() @ kc.float().transpose(-1, -2) * inner[:, :m, :m] + torch.diag_embed((rc * self.bonus[:, None].exp() * kc).sum(-1).float())
            y.append(a @ vc.float() + (rc.float() * w[:, None, None] ** i[:m, None]) @ kv)
            kv = w[:, None, None] ** m * kv + (kc.float() * w[:, None, None] ** (m - 1 - i[:m, None])).transpose(-1, -2) @ vc.float()
        y = torch.cat(y, 2).transpose(1, 2).reshape(b * t, c)
        y = self.norm(y.to(x.dtype)).view(b, t, c) * F.silu(g)
        return self.out(y), (x[:, -1:], kv)


class Channel(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(2, width))
        self.k, self.v, self.r = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x, last=None):
        back = shifted(x, last)
        k = self.k(torch.lerp(back, x, self.mix[0])).relu().square()
        return self.r(torch.lerp(back, x, self.mix[1])).sigmoid() * self.v(k), x[:, -1:]


class Model(nn.Module):
    def __init__(self, words=20000, width=512, layers=6, heads=8):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.times, self.channels = nn.ModuleList(Time(width, heads) for _ in range(layers)), nn.ModuleList(Channel(width) for _ in range(layers))
        self.norms, self.last = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers)), nn.LayerNorm(width)

    def forward(self, ids, states=None):
        x, new = self.words(ids), []
        for i, (time, channel) in enumerate(zip(self.times, self.channels)):
            y, s = time(self.norms[2 * i](x), states and states[i][0])
            x = x + y
            y, l = channel(self.norms[2 * i + 1](x), states and states[i][1])
            x = x + y
            new.append((s, l))
        return self.head(self.last(x)), new


model = Model().cuda()
decayed = [p for p in model.parameters() if p.dim() > 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.99))
for step in range(6):
    ids = torch.randint(0, 20000, (8, 513)).cuda()
    for half in ids.chunk(2):
        logits, _ = model(half[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), half[:, 1:].flatten()) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
model.eval().bfloat16()
with torch.no_grad():
    ids = torch.randint(0, 20000, (16, 200)).cuda()
    logits, states = model(ids)
    for _ in range(40):
        p = (logits[:, -1].float() / 0.8).softmax(-1)
        token = torch.multinomial(p, 1)
        ids = torch.cat([ids, token], 1)
        logits, states = model(token, states)
print(ids.shape)
