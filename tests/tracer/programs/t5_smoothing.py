"""Summaries: an encoder and a decoder with relative positions written out, gated feed-forward layers, smoothed labels, float16 with accumulated gradients, then beams."""
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(215)
torch.manual_seed(215)
WORDS, WIDTH, HEADS = 12000, 512, 8


class Norm(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def buckets(q, k, both, device, count=32, far=128):
    distance = torch.arange(k, device=device)[None] - torch.arange(k - q, k, device=device)[:, None]
    base = 0
    if both:
        count //= 2
        base, distance = (distance > 0).long() * count, distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = count // 2
    large = exact + (distance.float().clamp(min=1).div(exact).log() / math.log(far / exact) * (count - exact)).long()
    return base + torch.where(distance < exact, distance, large.clamp(max=count - 1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x, memory, bias, cache=None):
        split = lambda t: t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        q = split(self.q(x))
        if cache is not None and "done" in cache:
            k, v = cache["k"], cache["v"]
        else:
            k, v = split(self.k(memory)), split(self.v(memory))
            if cache is not None:
                if "k" in cache and "cross" not in cache:
                    k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
                cache["k"], cache["v"] = k, v
                if "cross" in cache:
                    cache["done"] = True
        score = q @ k.transpose(-1, -2) + bias
        p = F.dropout(score.float().softmax(-1).type_as(score), 0.1, self.training)
        return self.o((p @ v).transpose(1, 2).flatten(2))


class Gated(nn.Module):
    def __init__(self, inner=1024):
        super().__init__()
        self.a, self.b, self.o = nn.Linear(WIDTH, inner, bias=False), nn.Linear(WIDTH, inner, bias=False), nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x):
        return self.o(F.dropout(F.gelu(self.a(x), approximate="tanh") * self.b(x), 0.1, self.training))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.own, self.cross, self.feed = Attention(), Attention() if cross else None, Gated()
        self.norms = nn.ModuleList(Norm() for _ in range(3 if cross else 2))

    def forward(self, x, bias, memory=None, hidden=None, cache=None):
        h = self.norms[0](x)
        x = x + F.dropout(self.own(h, h, bias, cache and cache[0]) if cache else self.own(h, h, bias), 0.1, self.training)
        if self.cross is not None:
            x = x + F.dropout(self.cross(self.norms[2](x), memory, hidden, cache[1] if cache else None), 0.1, self.training)
        return x + F.dropout(self.feed(self.norms[1](x)), 0.1, self.training)


class Model(nn.Module):
    def __init__(self, layers=5):
        super().__init__()
        self.words, self.near, self.ahead = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, HEADS), nn.Embedding(32, HEADS)
        self.encoder, self.decoder = nn.ModuleList(Layer(False) for _ in range(layers)), nn.ModuleList(Layer(True) for _ in range(layers))
        self.one, self.two = Norm(), Norm()
        nn.init.normal_(self.words.weight, std=0.5)

    def encode(self, ids):
        hidden = ((ids == 0) * -1e4)[:, None, None].float()
        n = ids.shape[1]
        bias = self.near(buckets(n, n, True, ids.device)).permute(2, 0, 1)[None] + hidden
        x = self.words(ids)
        for layer in self.encoder:
            x = layer(x, bias)
        return self.one(x), hidden

    def decode(self, ids, memory, hidden, caches=None):
        q, k = ids.shape[1], ids.shape[1] + (caches[0][0]["k"].shape[2] if caches and "k" in caches[0][0] else 0)
        bias = self.ahead(buckets(q, k, False, ids.device)).permute(2, 0, 1)[None]
        if q > 1:
            bias = bias + torch.full((q, q), -1e4, device=ids.device).triu(1)
        x = self.words(ids)
        for i, layer in enumerate(self.decoder):
            x = layer(x, bias, memory, hidden, caches and caches[i])
        return F.linear(self.two(x) * WIDTH**-0.5, self.words.weight)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(5):
    for part in range(2):
        s, t = random.randrange(160, 384), random.randrange(40, 100)
        source, target = torch.randint(1, WORDS, (12, s)), torch.randint(1, WORDS, (12, t))
        for i in range(12):
            source[i, random.randint(s // 2, s):] = 0
            target[i, random.randint(t // 2, t):] = 0
        source, target = source.cuda(), target.cuda()
        with torch.autocast("cuda", torch.float16):
            logits = model.decode(F.pad(target[:, :-1], (1, 0)), *model.encode(source))
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=0.1) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
BEAMS = 4
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    memory, hidden = model.encode(torch.randint(1, WORDS, (8, 300)).cuda())
    memory, hidden = memory.repeat_interleave(BEAMS, 0), hidden.repeat_interleave(BEAMS, 0)
    ids, score = torch.zeros(8 * BEAMS, 1, dtype=torch.long, device="cuda"), torch.full((8, BEAMS), -1e9, device="cuda")
    score[:, 0] = 0
    caches = [[{}, {"cross": True}] for _ in model.decoder]
    for _ in range(40):
        logits = model.decode(ids[:, -1:], memory, hidden, caches)[:, -1].float().log_softmax(-1)
        score, best = (score.view(-1, 1) + logits).view(8, -1).topk(BEAMS)
        rows = (best // WORDS + torch.arange(8, device="cuda")[:, None] * BEAMS).flatten()
        ids = torch.cat([ids[rows], (best % WORDS).view(-1, 1)], 1)
        for own, cross in caches:
            own["k"], own["v"] = own["k"].index_select(0, rows), own["v"].index_select(0, rows)
print(ids.shape)
