"""A small GPT whose heads have a learned temperature each, on normalised queries and keys: Adagrad, bfloat16 autocast, batches of 24, gradients kept as zeros, averaged weights are evaluated and write text."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1419)
D, HEADS, DEPTH, V, T = 448, 7, 6, 10000, 384


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D, bias=False), nn.LayerNorm(D, bias=False)
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.up, self.down = nn.Linear(D, 4 * D, bias=False), nn.Linear(4 * D, D, bias=False)
        self.heat = nn.Parameter(torch.full((HEADS, 1, 1), 2.0))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        q = F.normalize(q, dim=-1) * self.heat.exp()
        y = F.scaled_dot_product_attention(q.to(v.dtype), F.normalize(k, dim=-1).to(v.dtype), v, is_causal=True, scale=1.0, dropout_p=0.1 if self.training else 0.0)
        x = x + self.drop(self.out(y.transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(F.gelu(self.up(self.n2(x)))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(T, D)
        self.blocks, self.norm, self.head = nn.ModuleList(Block() for _ in range(DEPTH)), nn.LayerNorm(D, bias=False), nn.Linear(D, V, bias=False)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, ids, targets=None):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        if targets is None:
            return self.head(self.norm(x[:, -1:]))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


model = GPT().cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
optimizer = torch.optim.Adagrad(model.parameters(), 5e-3)
model.train()
for step in range(6):
    ids = torch.randint(0, V, (24, T + 1)).cuda()
    optimizer.zero_grad(set_to_none=False)
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    print(step, loss.item())
average.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    ids = torch.randint(0, V, (24, T + 1)).cuda()
    print("loss", average(ids[:, :-1], ids[:, 1:]).item())
    text = ids[:, :32]
    for _ in range(24):
        text = torch.cat([text, torch.multinomial(average(text)[:, -1].float().softmax(-1), 1)], 1)
    print(text.shape)
