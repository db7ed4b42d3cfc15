"""A recommender of sessions: a causal transformer over items, a sparse table with SparseAdam, shared negatives, ranks of all items."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(109)
torch.manual_seed(109)
ITEMS, WIDTH = 800000, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH, sparse=True, padding_idx=0)
        self.place = nn.Embedding(64, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 512, dropout=0.2, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, ids):
        t = ids.shape[1]
        x = F.dropout(self.items(ids) + self.place.weight[:t], 0.2, self.training)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=ids.device), 1)
        return self.encoder(x, mask=mask, src_key_padding_mask=ids == 0)


def batch(n):
    t = random.randint(20, 64)
    ids = torch.zeros(n, t + 1, dtype=torch.long)
    for i in range(n):
        k = random.randint(3, t + 1)
        ids[i, :k] = torch.randint(1, ITEMS, (k,))
    return ids.cuda()


model = Model().cuda()
sparse = torch.optim.SparseAdam([model.items.weight], lr=1e-3)
dense = torch.optim.Adam([p for n, p in model.named_parameters() if not n.startswith("items")], lr=1e-3)
for step in range(9):
    ids = batch(1024)
    h = model(ids[:, :-1])
    target = ids[:, 1:]
    kept = target != 0
    h, target = h[kept], target[kept]
    negatives = torch.randint(1, ITEMS, (2048,), device="cuda")
    positive = (h * model.items(target)).sum(-1, keepdim=True)
    logits = torch.cat([positive, h @ model.items(negatives).t()], 1)
    loss = F.cross_entropy(logits, torch.zeros(len(h), dtype=torch.long, device="cuda"))
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(step, h.shape[0], loss.item())
model.eval()
hits = 0
with torch.inference_mode():
    for _ in range(3):
        ids = batch(256)
        scores = model(ids[:, :-1])[:, -1] @ model.items.weight.t()
        scores.scatter_(1, ids[:, :-1], float("-inf"))
        top = scores.topk(50, 1).indices
        hits += (top == ids[:, -1:]).any(1).sum().item()
print(hits)
