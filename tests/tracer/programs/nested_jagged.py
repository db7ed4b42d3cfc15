"""Documents of several lengths as nested tensors with the jagged layout: projections, attention, a loss on the values."""
import random

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, [self.heads, -1]).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


random.seed(39)
torch.manual_seed(39)
embed = nn.Embedding(30000, 512).cuda().bfloat16()
layers = nn.Sequential(*[Layer(512, 8) for _ in range(6)]).cuda().bfloat16()
head = nn.Linear(512, 30000).cuda().bfloat16()
params = [*embed.parameters(), *layers.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(params, lr=1e-4)
for step in range(6):
    docs = [torch.randint(0, 30000, (random.randrange(30, 700),)) for _ in range(24)]
    ids = torch.nested.nested_tensor(docs, layout=torch.jagged, device="cuda")
    x = layers(embed(ids))
    values = head(x).values()
    loss = F.cross_entropy(values[:-1].float(), ids.values()[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, values.shape[0], loss.item())
