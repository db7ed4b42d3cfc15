"""A language model whose experts are chosen by hashes of the words, with bfloat16 weights: Adamax, each epoch ends with a small batch, an evaluation with a larger batch at the end."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1520)
D, HEADS, DEPTH, EXPERTS, V, T = 512, 8, 6, 8, 12000, 256


class Experts(nn.Module):
    """Words are sorted by expert; each expert takes its own part."""

    def __init__(self, salt):
        super().__init__()
        self.salt = salt
        self.up = nn.ModuleList(nn.Linear(D, 2 * D) for _ in range(EXPERTS))
        self.down = nn.ModuleList(nn.Linear(2 * D, D) for _ in range(EXPERTS))

    def forward(self, x, ids):
        flat, chosen = x.flatten(0, 1), (ids.flatten() * 2654435761 + self.salt) % 1000003 % EXPERTS
        order = torch.argsort(chosen)
        parts = flat[order].split(torch.bincount(chosen, minlength=EXPERTS).tolist())
        done = torch.cat([down(F.gelu(up(p))) for up, down, p in zip(self.up, self.down, parts)])
        return torch.zeros_like(flat).index_copy(0, order, done).view_as(x)


class Block(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.n1, self.n2, self.qkv, self.out = nn.LayerNorm(D), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.experts = Experts(7919 * depth + 1)

    def forward(self, x, ids):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.experts(self.n2(x), ids)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(V, D), nn.Embedding(T, D), nn.LayerNorm(D)
        nn.init.normal_(self.words.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(i) for i in range(DEPTH))

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x, ids)
        return F.linear(self.norm(x), self.words.weight)


def loss_of(model, count):
    ids = torch.randint(0, V, (count, T + 1)).cuda()
    return F.cross_entropy(model(ids[:, :-1]).float().flatten(0, 1), ids[:, 1:].flatten())


model = Model().to("cuda", torch.bfloat16)
optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
model.train()
for epoch in range(2):
    for count in (16, 16, 16, 6):
        loss = loss_of(model, count)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print("loss", loss_of(model, 40).item())
