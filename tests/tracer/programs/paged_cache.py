"""Serving with a paged cache: requests come and go, tables of pages, keys and values gathered page by page."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(80)
torch.manual_seed(80)
WIDTH, HEADS, LAYERS, PAGE, PAGES = 1024, 8, 8, 16, 4096
DEPTH = WIDTH // HEADS


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out, self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, attend):
        q, k, v = self.qkv(self.norm1(x)).view(-1, 3, HEADS, DEPTH).unbind(1)
        x = x + self.out(attend(q, k, v).reshape(-1, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


layers = nn.ModuleList([Layer() for _ in range(LAYERS)]).cuda().half()
embed = nn.Embedding(32000, WIDTH).cuda().half()
cache = torch.zeros(LAYERS, 2, PAGES, PAGE, HEADS, DEPTH, device="cuda", dtype=torch.half)
free, running, waiting = list(range(PAGES)), [], [(random.randrange(30, 700), random.randrange(5, 60)) for _ in range(60)]


def store(layer, slots, k, v):
    cache[layer, 0].view(-1, HEADS, DEPTH)[slots] = k
    cache[layer, 1].view(-1, HEADS, DEPTH)[slots] = v


def slots_of(request, first, count):
    return [request["pages"][i // PAGE] * PAGE + i % PAGE for i in range(first, first + count)]


@torch.inference_mode()
def prefill(request):
    x = embed(torch.randint(0, 32000, (request["length"],), device="cuda"))
    slots = torch.tensor(slots_of(request, 0, request["length"]), device="cuda")
    for i, layer in enumerate(layers):
        def attend(q, k, v):
            store(i, slots, k, v)
            q, k, v = (t.transpose(0, 1).unsqueeze(0) for t in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(0).transpose(0, 1)
        x = layer(x, attend)
    return x[-1:]


@torch.inference_mode()
def decode(requests):
    x = embed(torch.randint(0, 32000, (len(requests),), device="cuda"))
    slots = torch.tensor([slots_of(r, r["length"] - 1, 1)[0] for r in requests], device="cuda")
    most = max(len(r["pages"]) for r in requests)
    table = torch.tensor([r["pages"] + [0] * (most - len(r["pages"])) for r in requests], device="cuda")
    lengths = torch.tensor([r["length"] for r in requests], device="cuda")
    mask = torch.arange(most * PAGE, device="cuda")[None] < lengths[:, None]
    for i, layer in enumerate(layers):
        def attend(q, k, v):
            store(i, slots, k, v)
            keys, values = (cache[i, j][table].flatten(1, 2).transpose(1, 2) for j in range(2))
            return F.scaled_dot_product_attention(q.unsqueeze(2), keys, values, attn_mask=mask[:, None, None]).squeeze(2)
        x = layer(x, attend)
    return x


steps = 0
while waiting or running:
    while waiting and len(running) < 24 and len(free) > 64:
        length, more = waiting.pop()
        request = {"length": length, "more": more, "pages": [free.pop() for _ in range(-(-length // PAGE))]}
        prefill(request)
        running.append(request)
    for r in running:
        r["length"] += 1
        if r["length"] > len(r["pages"]) * PAGE:
            r["pages"].append(free.pop())
    decode(running)
    torch.cuda.synchronize()
    for r in [r for r in running if r["more"] == 1]:
        free.extend(r["pages"])
        running.remove(r)
    for r in running:
        r["more"] -= 1
    steps += 1
print(steps, len(free))
