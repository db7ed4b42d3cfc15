"""A small language model as in nanoGPT, with shared keys and values, rotary positions, RMS norms and a gated layer: tied embeddings, fused AdamW, gradients accumulated, bfloat16, samples with a cache."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1113)
D, HEADS, KV, DEPTH, V, T = 512, 8, 2, 6, 16000, 512


def rotate(x, at):
    half = x.shape[-1] // 2
    angle = at[:, None] * torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.kv, self.o = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * KV * D // HEADS, bias=False), nn.Linear(D, D, bias=False)
        self.gate, self.up, self.down = nn.Linear(D, 1408, bias=False), nn.Linear(D, 1408, bias=False), nn.Linear(1408, D, bias=False)

    def forward(self, x, at, cache=None):
        b, t, _ = x.shape
        y = self.n1(x)
        q = rotate(self.q(y).view(b, t, HEADS, -1).transpose(1, 2), at)
        k, v = self.kv(y).view(b, t, 2, KV, -1).permute(2, 0, 3, 1, 4)
        k = rotate(k, at)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, D))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(V, D), nn.RMSNorm(D)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, ids, start=0, caches=None):
        x, at = self.words(ids), torch.arange(start, start + ids.shape[1], device=ids.device, dtype=torch.float32)
        for i, layer in enumerate(self.layers):
            x = layer(x, at, None if caches is None else caches[i])
        return F.linear(self.norm(x), self.words.weight)


model = Model().cuda()
decay = [p for p in model.parameters() if p.ndim > 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}], 6e-4, betas=(0.9, 0.95), fused=True)
for step in range(6):
    for part in range(3):
        ids = torch.randint(0, V, (10, T + 1)).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.view(-1, V), ids[:, 1:].reshape(-1)) / 3
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, 3 * loss.item(), norm.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    ids, caches = torch.randint(0, V, (24, 64), device="cuda"), [[] for _ in range(DEPTH)]
    logits = model(ids, 0, caches)
    for i in range(40):
        word = torch.multinomial(F.softmax(logits[:, -1].float() / 0.8, -1), 1)
        logits = model(word, 64 + i, caches)
    print(logits.float().std().item())
