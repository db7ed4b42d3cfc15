"""Translation with GRUs: a packed bidirectional encoder, a decoder that attends, teacher forcing by chance."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Encoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, 2, batch_first=True, bidirectional=True, dropout=0.2)
        self.join = nn.Linear(2 * width, width)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        out, hidden = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.join(out), torch.tanh(self.join(torch.cat([hidden[-2], hidden[-1]], dim=1)))


class Decoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.query, self.out = nn.Linear(width, width), nn.Linear(2 * width, words)

    def forward(self, token, hidden, memory, mask):
        scores = torch.bmm(memory, self.query(hidden).unsqueeze(2)).squeeze(2).masked_fill(~mask, float("-inf"))
        context = torch.bmm(F.softmax(scores, dim=1).unsqueeze(1), memory).squeeze(1)
        hidden = self.cell(torch.cat([self.embed(token), context], dim=1), hidden)
        return self.out(torch.cat([hidden, context], dim=1)), hidden


random.seed(24)
torch.manual_seed(24)
encoder, decoder = Encoder(16000, 512).cuda(), Decoder(16000, 512).cuda()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for step in range(8):
    lengths = sorted((random.randrange(10, 60) for _ in range(96)), reverse=step % 2 == 0)
    source = pad_sequence([torch.randint(1, 16000, (n,)) for n in lengths], batch_first=True).cuda()
    target = torch.randint(1, 16000, (96, random.randrange(20, 50)), device="cuda")
    memory, hidden = encoder(source, torch.tensor(lengths))
    mask = source[:, :memory.size(1)] != 0
    token, loss = target[:, 0], 0
    for i in range(1, target.size(1)):
        logits, hidden = decoder(token, hidden, memory, mask)
        loss = loss + F.cross_entropy(logits, target[:, i])
        token = target[:, i] if random.random() < 0.5 else logits.argmax(dim=1)
    loss = loss / target.size(1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1.0)
    optimizer.step()
    print(step, loss.item())
