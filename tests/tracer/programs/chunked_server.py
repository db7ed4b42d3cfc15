"""A server that batches as it goes: long prompts enter in chunks between single tokens, a cache of fixed slots in bfloat16, grouped queries, top-p sampling, slots given to the next in line."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(216)
torch.manual_seed(216)
WIDTH, HEADS, GROUPS, LAYERS, WORDS, SLOTS, LONGEST = 1024, 16, 4, 10, 32000, 12, 1536


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        d = WIDTH // HEADS
        self.one, self.two = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.kv, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * GROUPS * d, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * 2816, bias=False), nn.Linear(2816, WIDTH, bias=False)
        self.register_buffer("keys", torch.zeros(SLOTS, GROUPS, LONGEST, d))
        self.register_buffer("values", torch.zeros(SLOTS, GROUPS, LONGEST, d))

    def forward(self, x, slots, places, turn, longest):
        b, t, _ = x.shape
        h = self.one(x)
        q = rotated(self.q(h).view(b, t, HEADS, -1).transpose(1, 2), turn)
        k, v = self.kv(h).view(b, t, 2, GROUPS, -1).permute(2, 0, 3, 1, 4)
        k = rotated(k, turn)
        self.keys[slots[:, None], :, places] = k.transpose(1, 2)
        self.values[slots[:, None], :, places] = v.transpose(1, 2)
        k, v = self.keys[slots, :, :longest], self.values[slots, :, :longest]
        mask = torch.arange(longest, device=x.device) <= places[:, None, :, None]
        y = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        a, g = self.up(self.two(x)).chunk(2, -1)
        return x + self.down(F.silu(g) * a)


def rotated(x, turn):
    cos, sin = turn
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS)), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        d = WIDTH // HEADS
        angle = torch.arange(LONGEST)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids, slots, places, longest):
        turn = self.cos[places][:, None], self.sin[places][:, None]
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, slots, places, turn, longest)
        return self.head(self.norm(x[:, -1]))


def sample(logits, p=0.9, heat=0.7):
    order = (logits.float() / heat).softmax(-1).sort(-1, descending=True)
    shares, words = order
    cut = shares.cumsum(-1) - shares > p
    return words.gather(1, torch.multinomial(shares.masked_fill(cut, 0.0), 1))


model = Model().to(torch.bfloat16).cuda().eval()
waiting = [(random.randint(20, 1200), random.randint(8, 60)) for _ in range(40)]
free, entering, running, served = list(range(SLOTS)), None, {}, 0
with torch.inference_mode():
    while waiting or entering or running:
        if entering is None and waiting and free:
            prompt, answer = waiting.pop(0)
            entering = [free.pop(), torch.randint(0, WORDS, (prompt,)).cuda(), 0, answer]
        if entering:
            slot, ids, done, answer = entering
            chunk = ids[None, done : done + 256]
            places = torch.arange(done, done + chunk.shape[1], device="cuda")[None]
            logits = model(chunk, torch.tensor([slot], device="cuda"), places, done + chunk.shape[1])
            entering[2] += chunk.shape[1]
            if entering[2] == len(ids):
                running[slot] = [sample(logits), len(ids), answer]
                entering = None
        if running:
            slots = sorted(running)
            ids, places = torch.cat([running[s][0] for s in slots]), torch.tensor([[running[s][1]] for s in slots]).cuda()
            logits = model(ids, torch.tensor(slots).cuda(), places, int(places.max()) + 1)
            for s, word in zip(slots, sample(logits).split(1)):
                state = running[s]
                state[0], state[1], state[2] = word, state[1] + 1, state[2] - 1
                if state[2] == 0 or state[1] == LONGEST - 1:
                    del running[s]
                    free.append(s)
                    served += 1
torch.cuda.synchronize()
print(served, torch.cuda.max_memory_allocated() >> 20)
