"""A Whisper written out: strided convolutions over spectra, an encoder and a decoder with cached cross attention, float16 weights for greedy text, float32 training."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(810)
D, HEADS = 384, 6


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = nn.Linear(D, D), nn.Linear(D, D, bias=False), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x, other=None, cache=None, causal=False):
        q = self.query(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
        if other is not None and cache is not None and self in cache:
            k, v = cache[self]
        else:
            y = x if other is None else other
            k, v = (f(y).view(*y.shape[:2], HEADS, -1).transpose(1, 2) for f in (self.key, self.value))
            if cache is not None:
                if other is None and self in cache:
                    k, v = torch.cat([cache[self][0], k], 2), torch.cat([cache[self][1], v], 2)
                cache[self] = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal and q.shape[2] > 1)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.a, self.n = Attention(), nn.LayerNorm(D)
        self.cross, self.cn = (Attention(), nn.LayerNorm(D)) if cross else (None, None)
        self.mlp, self.mn = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)), nn.LayerNorm(D)

    def forward(self, x, other=None, cache=None):
        x = x + self.a(self.n(x), cache=cache, causal=self.cross is not None)
        if self.cross is not None:
            x = x + self.cross(self.cn(x), other, cache)
        return x + self.mlp(self.mn(x))


class Whisper(nn.Module):
    def __init__(self, words=12000):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, D, 3, padding=1), nn.Conv1d(D, D, 3, 2, 1)
        self.place, self.tplace = nn.Parameter(torch.randn(750, D) * 0.02), nn.Parameter(torch.randn(448, D) * 0.02)
        self.encoder, self.decoder = nn.ModuleList(Block(False) for _ in range(4)), nn.ModuleList(Block(True) for _ in range(4))
        self.words, self.n1, self.n2 = nn.Embedding(words, D), nn.LayerNorm(D), nn.LayerNorm(D)

    def encode(self, mel):
        x = F.gelu(self.c2(F.gelu(self.c1(mel)))).transpose(1, 2)
        x = x + self.place
        for b in self.encoder:
            x = b(x)
        return self.n1(x)

    def decode(self, ids, audio, cache=None, begin=0):
        x = self.words(ids) + self.tplace[begin : begin + ids.shape[1]]
        for b in self.decoder:
            x = b(x, audio, cache)
        return self.n2(x) @ self.words.weight.t()


model = Whisper().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-6)
for step in range(6):
    mel, ids = torch.randn(12, 80, 1500).cuda(), torch.randint(0, 12000, (12, 61 + 10 * step)).cuda()
    logits = model.decode(ids[:, :-1], model.encode(mel))
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model = model.half().eval()
with torch.no_grad():
    audio = model.encode(torch.randn(8, 80, 1500, device="cuda", dtype=torch.float16))
    ids, cache = torch.zeros(8, 4, dtype=torch.long, device="cuda"), {}
    logits = model.decode(ids, audio, cache)
    for place in range(4, 60):
        word = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, word], 1)
        logits = model.decode(word, audio, cache, place)
print(ids.shape)
