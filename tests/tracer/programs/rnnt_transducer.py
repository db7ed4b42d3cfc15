"""A transducer for speech: an encoder of LSTMs that halves time, a predictor, their joint lattice, its loss by diagonals in a loop, then greedy search frame by frame."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(212)
WORDS = 257


class Encoder(nn.Module):
    def __init__(self, mels=80, width=512):
        super().__init__()
        self.one, self.two, self.norm = nn.LSTM(mels * 2, width, 2, batch_first=True, dropout=0.1), nn.LSTM(width * 2, width, 2, batch_first=True, dropout=0.1), nn.LayerNorm(width)

    def forward(self, x):
        x, _ = self.one(x[:, : x.shape[1] // 2 * 2].reshape(len(x), -1, 160))
        x, _ = self.two(x[:, : x.shape[1] // 2 * 2].reshape(len(x), -1, 1024))
        return self.norm(x)


class Transducer(nn.Module):
    def __init__(self, width=512, joint=320):
        super().__init__()
        self.encoder, self.words, self.predictor = Encoder(width=width), nn.Embedding(WORDS, 256), nn.LSTM(256, width, batch_first=True)
        self.enter, self.other, self.out = nn.Linear(width, joint), nn.Linear(width, joint), nn.Linear(joint, WORDS)

    def forward(self, speech, text):
        a = self.enter(self.encoder(speech))
        b = self.other(self.predictor(self.words(F.pad(text, (1, 0))))[0])
        return self.out(torch.tanh(a[:, :, None] + b[:, None]))


def lattice(logits, text, frames, lengths):
    """The negative logarithm of the sum over all paths, diagonal by diagonal."""
    p = logits.float().log_softmax(-1)
    blank = p[..., 0]
    emit = p[:, :, :-1].gather(-1, text[:, None, :, None].expand(-1, p.shape[1], -1, 1)).squeeze(-1)
    n, t, u = blank.shape
    alpha, columns = blank.new_full((n, u), -1e9), torch.arange(u, device=logits.device)
    alpha[:, 0] = 0
    found = blank.new_zeros(n)
    for diagonal in range(1, t + u):
        row = diagonal - columns
        stay = alpha + blank[:, (row - 1).clamp(0, t - 1), columns]
        move = alpha[:, :-1] + emit[:, row[1:].clamp(0, t - 1), columns[:-1]]
        stay = stay.masked_fill((row < 1) | (row > t), -1e9)
        move = F.pad(move.masked_fill((row[1:] < 0) | (row[1:] >= t), -1e9), (1, 0), value=-1e9)
        alpha = torch.logaddexp(stay, move)
        done = frames + lengths == diagonal
        found = torch.where(done, alpha.gather(1, lengths[:, None]).squeeze(1), found)
    return -found.mean()


model = Transducer().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
for step in range(5):
    t, u = ((320, 24), (400, 30), (280, 18), (360, 36), (400, 30))[step]
    speech, text = torch.randn(12, t, 80).cuda(), torch.randint(1, WORDS, (12, u)).cuda()
    frames, lengths = torch.randint(t // 8, t // 4 + 1, (12,)).cuda(), torch.randint(u // 2, u + 1, (12,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(speech, text)
    loss = lattice(logits, text, frames, lengths)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        a = model.enter(model.encoder(torch.randn(8, 480, 80).cuda()))
        last, state = torch.zeros(8, 1, dtype=torch.long, device="cuda"), None
        b, state = model.predictor(model.words(last))
        b = model.other(b[:, 0])
        words = []
        for i in range(a.shape[1]):
            best = model.out(torch.tanh(a[:, i] + b)).argmax(-1)
            y, new = model.predictor(model.words(best[:, None]), state)
            spoke = best != 0
            b = torch.where(spoke[:, None], model.other(y[:, 0]), b)
            state = tuple(torch.where(spoke[None, :, None], n, s) for n, s in zip(new, state))
            words.append(best)
        print(torch.stack(words, 1).shape)
