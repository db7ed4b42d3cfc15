"""A small GPT with torch.compile. Arguments: tokens of the vocabulary, dropout, mode of torch.compile."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, drop):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.rd = nn.Dropout(drop)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, 2)
        q, k, v = [t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v)]
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop if self.training else 0, is_causal=True)
        return self.rd(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class Block(nn.Module):
    def __init__(self, width, heads, drop):
        super().__init__()
        self.a = Attention(width, heads, drop)
        self.l1, self.l2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.f, self.p, self.d = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(drop)

    def forward(self, x):
        x = x + self.a(self.l1(x))
        return x + self.d(self.p(F.gelu(self.f(self.l2(x)))))


class GPT(nn.Module):
    def __init__(self, vocabulary, drop, width=768, heads=12, layers=4, length=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.b = nn.ModuleList(Block(width, heads, drop) for _ in range(layers))
        self.ln, self.head, self.dr = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False), nn.Dropout(drop)
        self.head.weight = self.wte.weight

    def forward(self, i, t):
        x = self.dr(self.wte(i) + self.wpe(torch.arange(i.shape[1], device=i.device)))
        for b in self.b:
            x = b(x)
        logits = self.head(self.ln(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), t.view(-1), ignore_index=-1)


vocabulary, drop, mode = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
torch.manual_seed(1)
model = GPT(vocabulary, drop).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
compiled = torch.compile(model, mode=mode)
for step in range(5):
    ids = torch.randint(0, vocabulary, (8, 1024), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits, loss = compiled(ids, ids)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    del logits, loss
