"""Encoder layers under torch.compile on batches of several lengths. Argument: mode of torch.compile."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.e = nn.Embedding(1000, width)
        self.l = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 2048, batch_first=True, dropout=0.0, norm_first=True) for _ in range(2)
        )
        self.h = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.e(x)
        for b in self.l:
            x = b(x)
        return self.h(x)


torch.manual_seed(1)
model = Encoder().cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model, mode=sys.argv[1])
for length in (128, 200, 333, 128, 512, 77, 420):
    x = torch.randint(0, 1000, (16, length), device="cuda")
    loss = F.cross_entropy(compiled(x).view(-1, 1000), x.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
