"""Bags of ids of several lengths: sum, mean and max, sparse gradients with SparseAdam and SGD, an MLP with Adagrad."""
import torch
import torch.nn.functional as F
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = nn.EmbeddingBag(400000, 128, mode="sum", sparse=True)
        self.words = nn.EmbeddingBag(100000, 128, mode="mean", sparse=True, padding_idx=0)
        self.tags = nn.EmbeddingBag(20000, 64, mode="max")
        self.item = nn.Embedding(800000, 64, sparse=True)
        self.top = nn.Sequential(nn.Linear(128 + 128 + 64 + 64, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(),
                                 nn.Linear(512, 1))

    def forward(self, history, offsets, weights, words, tags, starts, item):
        parts = [self.history(history, offsets, per_sample_weights=weights), self.words(words),
                 self.tags(tags, starts), self.item(item)]
        return self.top(torch.cat(parts, dim=1)).squeeze(1)


def bags(rows, most, ids):
    lengths = torch.randint(1, most, (rows,))
    return torch.randint(0, ids, (int(lengths.sum()),)), torch.cumsum(lengths, 0) - lengths


torch.manual_seed(26)
model = Ranker().cuda()
adam = torch.optim.SparseAdam([model.history.weight, model.item.weight], lr=1e-3)
sgd = torch.optim.SGD([model.words.weight], lr=0.1)
dense = torch.optim.Adagrad([model.tags.weight, *model.top.parameters()], lr=0.01)
for step in range(10):
    rows = (4096, 8192)[step % 2]
    history, offsets = bags(rows, 40, 400000)
    tags, starts = bags(rows, 6, 20000)
    words = torch.randint(0, 100000, (rows, 24))
    inputs = [t.cuda() for t in (history, offsets, torch.rand(len(history)), words, tags, starts,
                                 torch.randint(0, 800000, (rows,)))]
    clicks = torch.randint(0, 2, (rows,), device="cuda").float()
    loss = F.binary_cross_entropy_with_logits(model(*inputs), clicks)
    for optimizer in (adam, sgd, dense):
        optimizer.zero_grad(set_to_none=True)
    loss.backward()
    for optimizer in (adam, sgd, dense):
        optimizer.step()
    print(step, loss.item())
