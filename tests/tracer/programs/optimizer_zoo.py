"""Seven optimizers one after the other on the same network: Muon, Adafactor, NAdam, Rprop, ASGD, Adadelta, RAdam."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)


class Mixer(nn.Module):
    def __init__(self, width=512, patches=196):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 16, 16)
        self.rows = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(8)])
        self.columns = nn.ModuleList([nn.Sequential(nn.Linear(patches, 256), nn.GELU(), nn.Linear(256, patches)) for _ in range(8)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(8)])
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for row, column, norm in zip(self.rows, self.columns, self.norms):
            x = x + column(norm(x).transpose(1, 2)).transpose(1, 2)
            x = x + row(x)
        return self.head(x.mean(1))


def optimizers(model):
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "head" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "head" in n]
    yield "muon", [torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1), torch.optim.AdamW(rest, lr=3e-4)]
    yield "adafactor", [torch.optim.Adafactor(model.parameters(), lr=1e-3)]
    yield "nadam", [torch.optim.NAdam(model.parameters(), lr=1e-3, decoupled_weight_decay=True, weight_decay=0.01)]
    yield "rprop", [torch.optim.Rprop(model.parameters(), lr=1e-3)]
    yield "asgd", [torch.optim.ASGD(model.parameters(), lr=1e-3)]
    yield "adadelta", [torch.optim.Adadelta(model.parameters(), foreach=False)]
    yield "radam", [torch.optim.RAdam(model.parameters(), lr=1e-3, foreach=False)]


model = Mixer().cuda()
for name, group in optimizers(model):
    for step in range(3):
        image, label = torch.rand(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda()
        loss = F.cross_entropy(model(image), label, label_smoothing=0.1)
        for o in group:
            o.zero_grad()
        loss.backward()
        for o in group:
            o.step()
    print(name, loss.item())
    del o, group
