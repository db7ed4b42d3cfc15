"""Three more programs for long_run.py, whose memory depends on data that the program draws in each step.

cloud: points in cells, whose number follows from the values, with rare large scenes. sage: graphs of varied sizes; each
step's loss stays on the card, and each evaluation's predictions, as in a program that forgets to move its log to the
host. serve: a server that decodes requests of varied lengths, which come and go; each has a key-value cache of its own
that grows by a copy.
"""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Cloud:
    """Sizes come from values: unique cells, masks, nonzero; pooling by scatter (as tracer/programs/voxel_unique.py)."""

    def __init__(self):
        self.point = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64))
        self.cell = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.ReLU(), nn.Linear(256, 64))
        self.head = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 20))
        self.net = nn.ModuleList([self.point, self.cell, self.head]).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)

    def scores(self, points, color):
        keep = (points.norm(dim=1) < 2.0).nonzero().squeeze(1)
        points, color = points[keep], color[keep]
        grid = torch.floor(points / 0.1).long() + 64
        key = (grid[:, 0] * 128 + grid[:, 1]) * 128 + grid[:, 2]
        cells, inverse, counts = torch.unique(key, return_inverse=True, return_counts=True)
        f = self.point(torch.cat([points, color], 1))
        pooled = f.new_zeros(len(cells), 64).index_add(0, inverse, f) / counts[:, None]
        dense, big = self.cell(pooled)[inverse], counts[inverse] > 1
        return self.head(torch.cat([f, dense], 1)[big]), keep[big]

    def step(self, _):
        n = min(200_000, int(random.lognormvariate(10.2, 0.5)))
        points, color = torch.randn(n, 3, device="cuda"), torch.rand(n, 3, device="cuda")
        label = torch.randint(0, 20, (n,), device="cuda")
        scores, kept = self.scores(points, color)
        F.cross_entropy(scores, label[kept]).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Sage:
    """Two layers that take means over neighbours; a batch of two to eight graphs is one large graph."""

    def __init__(self):
        widths = [(64, 128), (128, 128)]
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in widths)
        self.near = nn.ModuleList(nn.Linear(a, b) for a, b in widths)
        self.out = nn.Linear(128, 10)
        self.model = nn.ModuleList([self.own, self.near, self.out]).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.losses, self.predictions = [], []

    def forward(self):
        graphs = random.randrange(2, 9)
        nodes = sum(random.randrange(200, 2400) for _ in range(graphs))
        edges = nodes * random.randrange(4, 10)
        x = torch.randn(nodes, 64, device="cuda")
        here, there = torch.randint(0, nodes, (2, edges)).cuda()
        degree = torch.zeros(nodes, 1, device="cuda").index_add(0, there, torch.ones(edges, 1, device="cuda"))
        for own, near in zip(self.own, self.near):
            sums = x.new_zeros(nodes, x.shape[1]).index_add(0, there, x[here])
            x = F.dropout(F.relu(own(x) + near(sums / degree.clamp(min=1))), 0.3, self.model.training)
        return self.out(x), torch.randint(0, 10, (nodes,), device="cuda")

    def step(self, i):
        scores, label = self.forward()
        loss = F.cross_entropy(scores, label)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.losses.append(loss.detach())
        if i % 50 == 49:
            self.model.eval()
            with torch.no_grad():
                self.predictions.append(self.forward()[0].argmax(1))
            self.model.train()


class Serve:
    """Decoding of up to 16 requests. A prompt is computed when its request comes; each token makes the cache longer."""

    def __init__(self, words=8000, width=256, layers=2, heads=4):
        torch.backends.cuda.enable_cudnn_sdp(False)  # it compiles a plan for each new length: 60 ms a step
        self.words, self.heads = nn.Embedding(words, width), heads
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers))  # fmt: skip
        self.head = nn.Linear(width, words)
        self.model = nn.ModuleList([self.words, self.qkv, self.mlp, self.head]).half().cuda()
        self.requests = []

    def attend(self, layer, x, caches, causal):
        rows = len(caches)
        q, k, v = self.qkv[layer](x).view(rows, -1, 3, self.heads, x.shape[-1] // self.heads).permute(2, 0, 3, 1, 4)
        out = []
        for row, cache in enumerate(caches):
            if layer in cache:
                cache[layer] = [torch.cat([old, new[row]], 1) for old, new in zip(cache[layer], (k, v))]
            else:
                cache[layer] = [k[row].contiguous(), v[row].contiguous()]
            keys, values = cache[layer]
            out.append(F.scaled_dot_product_attention(q[row][None], keys[None], values[None], is_causal=causal))
        return torch.cat(out).transpose(1, 2).flatten(2)

    def run(self, tokens, caches, causal=False):
        x = self.words(tokens)
        for layer in range(len(self.qkv)):
            x = x + self.attend(layer, x, caches, causal)
            x = x + self.mlp[layer](x)
        return torch.multinomial(self.head(x[:, -1]).float().softmax(-1), 1)

    @torch.no_grad()
    def step(self, _):
        while len(self.requests) < 16 and random.random() < 0.3:
            length, cache = min(2000, max(8, int(random.lognormvariate(5.3, 0.9)))), {}
            prompt = torch.randint(0, 8000, (1, length)).cuda()
            left = min(1000, max(4, int(random.lognormvariate(4.0, 0.8))))
            self.requests.append([left, cache, self.run(prompt, [cache], True)])
        if not self.requests:
            return
        new = self.run(torch.cat([r[2] for r in self.requests]), [r[1] for r in self.requests])
        for request, token in zip(self.requests, new.split(1)):
            request[0] -= 1
            request[2] = token.clone()
        self.requests = [r for r in self.requests if r[0]]


PROGRAMS = {"cloud": Cloud, "sage": Sage, "serve": Serve}
