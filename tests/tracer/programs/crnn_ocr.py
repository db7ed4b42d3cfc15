"""Lines of text are read: convolutions that halve the height alone, a bidirectional LSTM of two layers, CTC, lines as wide as the widest of a batch, greedy reading with repeats removed."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(213)
torch.manual_seed(213)


class Reader(nn.Module):
    def __init__(self, letters=97, hidden=256):
        super().__init__()
        layers, c = [], 1
        for i, o in enumerate((64, 128, 256, 256, 512, 512)):
            layers += [nn.Conv2d(c, o, 3, 1, 1, bias=i not in (2, 4))]
            layers += [nn.BatchNorm2d(o)] if i in (2, 4) else []
            layers += [nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(2, 2)] if i < 2 else [nn.MaxPool2d((2, 1), (2, 1))] if i in (3, 5) else []
            c = o
        self.look = nn.Sequential(*layers, nn.Conv2d(512, 512, (2, 2)), nn.ReLU(inplace=True))
        self.read, self.out = nn.LSTM(512, hidden, 2, bidirectional=True, dropout=0.2), nn.Linear(2 * hidden, letters)

    def forward(self, lines):
        x = self.look(lines).squeeze(2).permute(2, 0, 1)
        return self.out(self.read(x)[0])


model = Reader().cuda()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, rho=0.95)
loss_of = nn.CTCLoss(zero_infinity=True)
for step in range(9):
    widths = [random.randrange(96, 400, 16) for _ in range(48)]
    lines = torch.ones(48, 1, 32, max(widths))
    for i, w in enumerate(widths):
        lines[i, :, :, :w].uniform_(-1, 1)
    lengths = [max(1, min(w // 16, 20)) for w in widths]
    text = torch.randint(1, 97, (sum(lengths),))
    logits = model(lines.cuda())
    loss = loss_of(logits.log_softmax(-1), text.cuda(), torch.tensor([w // 4 - 1 for w in widths]), torch.tensor(lengths))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(step, max(widths), loss.item())
    if step % 3 == 2:
        model.eval()
        with torch.no_grad():
            for width in (200, 320):
                best = model(torch.rand(100, 1, 32, width).cuda()).argmax(-1).t().cpu()
                texts = [[b for a, b in zip([-1, *row], row) if b != a and b] for row in best.tolist()]
        model.train()
        print(len(texts))
