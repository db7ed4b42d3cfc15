"""Reinforcement of a language model: groups of answers sampled with a growing cache, rewards, a clipped loss, a frozen reference."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(106)
VOCABULARY, WIDTH, HEADS = 12000, 768, 12


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up, self.down = [nn.Linear(*s, bias=False) for s in ((WIDTH, 2048), (WIDTH, 2048), (2048, WIDTH))]

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q, k, v = [y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1)]
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, WIDTH))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), (k, v)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(512, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(8))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, caches=None):
        first = caches[0][0].shape[2] if caches else 0
        x = self.tokens(ids) + self.places(torch.arange(first, first + ids.shape[1], device=ids.device))
        out = []
        for i, layer in enumerate(self.layers):
            x, c = layer(x, caches[i] if caches else None)
            out.append(c)
        return self.head(self.norm(x)), out


policy = Model().cuda().to(torch.bfloat16)
reference = copy.deepcopy(policy).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6, weight_decay=0.0)


@torch.no_grad()
def sample(prompts, n):
    ids = prompts
    logits, caches = policy(ids)
    for _ in range(n):
        p = (logits[:, -1].float() / 0.8).softmax(-1)
        top, index = p.sort(-1, descending=True)
        top[top.cumsum(-1) - top > 0.95] = 0
        token = index.gather(1, torch.multinomial(top, 1))
        ids = torch.cat([ids, token], 1)
        logits, caches = policy(token, caches)
    return ids


def log_probabilities(model, ids, start):
    logits, _ = model(ids[:, :-1])
    return -F.cross_entropy(logits[:, start - 1 :].float().transpose(1, 2), ids[:, start:], reduction="none")


for step in range(3):
    length = 48 + 16 * step
    prompts = torch.randint(0, VOCABULARY, (8, length)).cuda().repeat_interleave(6, 0)
    ids = sample(prompts, 60 + 20 * step)
    with torch.no_grad():
        old = torch.cat([log_probabilities(policy, c, length) for c in ids.split(16)])
        base = torch.cat([log_probabilities(reference, c, length) for c in ids.split(16)])
    rewards = (ids[:, length:] % 7 == 0).float().mean(1).view(8, 6)
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).view(-1, 1)
    for epoch in range(2):
        order = torch.randperm(48)
        for chunk in order.split(12):
            chunk = chunk.cuda()
            new = log_probabilities(policy, ids[chunk], length)
            ratio = (new - old[chunk]).exp()
            gap = base[chunk] - new
            divergence = gap.exp() - gap - 1
            a = advantages[chunk]
            loss = -(torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a) - 0.04 * divergence).mean()
            (loss / 2).backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(step, loss.item(), rewards.mean().item())
