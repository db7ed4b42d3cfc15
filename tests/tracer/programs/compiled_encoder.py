"""A compiled encoder that learns masked tokens: bfloat16 autocast, accumulated gradients, one compiled evaluation, fused Adam."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(116)
VOCABULARY, WIDTH = 16384, 640


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = [y.view(b, t, 10, -1).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1)]
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.drop(self.o(y.transpose(1, 2).reshape(b, t, c)))
        a, g = self.up(self.n2(x)).chunk(2, -1)
        return x + self.drop(self.down(a * F.gelu(g)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.zeros(256, WIDTH))
        self.layers, self.norm = nn.Sequential(*[Layer() for _ in range(6)]), nn.LayerNorm(WIDTH)

    def forward(self, ids, labels):
        x = self.norm(self.layers(self.embed(ids) + self.place))
        return F.cross_entropy(F.linear(x, self.embed.weight).flatten(0, 1), labels.flatten(), ignore_index=-100)


model = Model().cuda()
compiled = torch.compile(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)


def batch(n):
    ids = torch.randint(2, VOCABULARY, (n, 256))
    hidden = torch.rand(n, 256) < 0.15
    labels = ids.masked_fill(~hidden, -100)
    return ids.masked_fill(hidden, 1).cuda(), labels.cuda()


for step in range(8):
    for micro in range(2):
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(*batch(24)) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step == 3:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            print(compiled(*batch(64)).item())
        model.train()
    print(step, loss.item())
