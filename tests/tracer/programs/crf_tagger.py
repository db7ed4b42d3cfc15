"""A tagger: characters through a 1-D convolution, packed sentences through a bidirectional LSTM, a CRF as a loop, Viterbi."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(103)
torch.manual_seed(103)
TAGS = 24


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60000, 256, padding_idx=0)
        self.chars = nn.Embedding(120, 48, padding_idx=0)
        self.conv = nn.Conv1d(48, 128, 3, padding=1)
        self.lstm = nn.LSTM(384, 384, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        self.out = nn.Linear(768, TAGS)
        self.moves = nn.Parameter(torch.randn(TAGS, TAGS) * 0.1)
        self.start, self.stop = nn.Parameter(torch.zeros(TAGS)), nn.Parameter(torch.zeros(TAGS))

    def scores(self, words, chars, lengths):
        b, t, n = chars.shape
        c = self.conv(self.chars(chars).view(b * t, n, 48).transpose(1, 2)).max(-1).values.view(b, t, 128)
        x = torch.cat([self.words(words), c], -1)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)

    def likelihood(self, emit, tags, mask):
        b, t, _ = emit.shape
        gold = self.start[tags[:, 0]] + emit[:, 0].gather(1, tags[:, :1]).squeeze(1)
        alpha = self.start + emit[:, 0]
        for i in range(1, t):
            step = self.moves[tags[:, i - 1], tags[:, i]] + emit[:, i].gather(1, tags[:, i : i + 1]).squeeze(1)
            gold = gold + step * mask[:, i]
            after = torch.logsumexp(alpha.unsqueeze(2) + self.moves + emit[:, i].unsqueeze(1), 1)
            alpha = torch.where(mask[:, i : i + 1].bool(), after, alpha)
        last = tags.gather(1, (mask.sum(1).long() - 1).unsqueeze(1)).squeeze(1)
        return torch.logsumexp(alpha + self.stop, 1) - gold - self.stop[last]

    @torch.no_grad()
    def decode(self, emit):
        best, back = self.start + emit[:, 0], []
        for i in range(1, emit.shape[1]):
            best, where = (best.unsqueeze(2) + self.moves).max(1)
            best = best + emit[:, i]
            back.append(where)
        tag = (best + self.stop).argmax(1)
        path = [tag]
        for where in reversed(back):
            tag = where.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path[::-1], 1)


def batch(n):
    lengths = [random.randint(8, 70) for _ in range(n)]
    words = pad_sequence([torch.randint(1, 60000, (k,)) for k in lengths], batch_first=True)
    tags = pad_sequence([torch.randint(0, TAGS, (k,)) for k in lengths], batch_first=True)
    mask = pad_sequence([torch.ones(k) for k in lengths], batch_first=True)
    chars = torch.randint(0, 120, (n, max(lengths), random.randint(9, 18)))
    return words.cuda(), chars.cuda(), tags.cuda(), mask.cuda(), torch.tensor(lengths)


model = Tagger().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.015, momentum=0.9, weight_decay=1e-6)
for step in range(10):
    words, chars, tags, mask, lengths = batch(128)
    loss = model.likelihood(model.scores(words, chars, lengths), tags, mask).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 4 == 3:
        model.eval()
        words, chars, tags, mask, lengths = batch(256)
        with torch.no_grad():
            path = model.decode(model.scores(words, chars, lengths))
        print(step, loss.item(), ((path == tags) * mask).sum().item())
        model.train()
