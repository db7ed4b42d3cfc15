"""ELMo-like: convolutions of several widths over characters, highways, two LSTMs of each direction with projections by linear layers, both next and previous words predicted; then the frozen model under a tagger that weights its layers."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1003)
WORDS, D = 12000, 384


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(262, 16)
        self.filters = nn.ModuleList(nn.Conv1d(16, o, k) for k, o in ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 256)))
        self.ways = nn.ModuleList(nn.Linear(768, 1536) for _ in range(2))
        self.out = nn.Linear(768, D)

    def forward(self, chars):
        x = self.table(chars.flatten(0, 1)).transpose(1, 2)
        x = torch.cat([F.relu(f(x)).amax(-1) for f in self.filters], 1)
        for way in self.ways:
            y, gate = way(x).chunk(2, -1)
            x = gate.sigmoid() * x + (1 - gate.sigmoid()) * F.relu(y)
        return self.out(x).view(*chars.shape[:2], D)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters = Characters()
        self.ahead, self.back = (nn.ModuleList(nn.LSTM(D, 768, batch_first=True) for _ in range(2)) for _ in "ab")
        self.to_ahead, self.to_back = (nn.ModuleList(nn.Linear(768, D) for _ in range(2)) for _ in "ab")
        self.words = nn.Linear(D, WORDS)

    def forward(self, chars):
        x = self.characters(chars)
        layers = [torch.cat([x, x], -1)]
        a, b = x, x.flip(1)
        for la, ta, lb, tb in zip(self.ahead, self.to_ahead, self.back, self.to_back):
            a, b = F.dropout(ta(la(a)[0]), 0.1, self.training) + a, F.dropout(tb(lb(b)[0]), 0.1, self.training) + b
            layers.append(torch.cat([a, b.flip(1)], -1))
        return layers


net = Both().cuda()
optimizer = torch.optim.Adagrad(net.parameters(), 0.1, initial_accumulator_value=1.0)
for step, length in enumerate((20, 26, 20, 33, 26, 33, 20)):
    chars, words = torch.randint(0, 262, (48, length, 24)).cuda(), torch.randint(0, WORDS, (48, length)).cuda()
    top = net(chars)[-1]
    ahead = F.cross_entropy(net.words(top[:, :-1, :D]).flatten(0, 1), words[:, 1:].flatten())
    back = F.cross_entropy(net.words(top[:, 1:, D:]).flatten(0, 1), words[:, :-1].flatten())
    optimizer.zero_grad()
    (ahead + back).backward()
    nn.utils.clip_grad_value_(net.parameters(), 5.0)
    optimizer.step()
    print(step, ahead.item(), back.item())
net.eval().requires_grad_(False)
weights, scale = nn.Parameter(torch.zeros(3, device="cuda")), nn.Parameter(torch.ones((), device="cuda"))
tagger = nn.LSTM(2 * D, 256, bidirectional=True, batch_first=True).cuda()
head = nn.Linear(512, 19).cuda()
small = torch.optim.Adam([weights, scale, *tagger.parameters(), *head.parameters()], 1e-3)
for step, length in enumerate((24, 31, 18, 31)):
    with torch.no_grad():
        layers = torch.stack(net(torch.randint(0, 262, (64, length, 24)).cuda()))
    x = F.dropout(scale * (weights.softmax(0)[:, None, None, None] * layers).sum(0), 0.5)
    loss = F.cross_entropy(head(tagger(x)[0]).flatten(0, 1), torch.randint(0, 19, (64 * length,)).cuda())
    small.zero_grad()
    loss.backward()
    small.step()
    print("tag", step, loss.item())
