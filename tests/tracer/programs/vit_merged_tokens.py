"""A ViT that merges its most similar tokens between attention and perceptron of each layer, in channels last: Adam, bfloat16 autocast, batches of 12, gradients clipped by value, an evaluation of other sizes at the end."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1516)
D, HEADS, DEPTH, PATCH, MERGED = 512, 8, 10, 16, 24


def pairs(keys, count):
    """Of every second token the count that are most like one of the others: which, into which, and which stay."""
    keys = F.normalize(keys.float(), dim=-1)
    likeness = keys[:, ::2] @ keys[:, 1::2].transpose(1, 2)
    likeness[:, 0] = -float("inf")  # the token of the class stays
    best, where = likeness.max(-1)
    order = best.argsort(-1, descending=True)
    gone, stay = order[:, :count, None], order[:, count:].sort(-1).values[..., None]
    return gone, where[..., None].gather(1, gone), stay


def merge(x, size, found):
    """The mean of merged tokens, by how many patches each stands for."""
    gone, into, stay = found

    def both(z):
        even, odd, wide = z[:, ::2], z[:, 1::2], z.shape[-1]
        moved = even.gather(1, gone.expand(-1, -1, wide))
        odd = odd.scatter_add(1, into.expand(-1, -1, wide), moved)
        return torch.cat([even.gather(1, stay.expand(-1, -1, wide)), odd], 1)
    total = both(size)
    return both(x * size) / total, total


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.qkv, self.out = nn.LayerNorm(D), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * D, D))

    def forward(self, x, size):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        weight = q @ k.transpose(-2, -1) * (D // HEADS) ** -0.5 + size.log()[:, None, None, :, 0]
        x = x + self.out((weight.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2))
        with torch.no_grad():
            found = pairs(k.mean(1), MERGED)
        x, size = merge(x, size, found)
        return x + self.mlp(self.n2(x)), size


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.kind = nn.Conv2d(3, D, PATCH, PATCH), nn.Parameter(torch.zeros(1, 1, D))
        self.place = nn.Parameter(torch.randn(1, D, 18, 18) * 0.02)
        self.layers, self.norm, self.head = nn.ModuleList(Layer() for _ in range(DEPTH)), nn.LayerNorm(D), nn.Linear(D, 100)

    def forward(self, x):
        x = self.patch(x)
        x = x + F.interpolate(self.place, size=x.shape[2:], mode="bicubic", align_corners=False)
        x = torch.cat([self.kind.expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)], 1)
        size = torch.ones_like(x[..., :1])
        for layer in self.layers:
            x, size = layer(x, size)
        return self.head(self.norm(x)[:, 0])


model = ViT().to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), 3e-4)
model.train()
for step in range(6):
    x = torch.randn(12, 3, 288, 288).to("cuda", memory_format=torch.channels_last)
    y = torch.randint(0, 100, (12,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for high, wide in ((320, 288), (384, 384), (352, 448)):
        x = torch.randn(12, 3, high, wide).to("cuda", memory_format=torch.channels_last)
        print((high, wide), model(x).argmax(1).tolist())
