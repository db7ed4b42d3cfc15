"""Translation with LSTMs: a packed encoder in both directions, a decoder with additive attention one word at a time, teacher forcing by chance, then a greedy decode."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(1118)
random.seed(1118)
V, E, H = 9000, 256, 384


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.drop = nn.Embedding(V, E, padding_idx=0), nn.Dropout(0.2)
        self.lstm, self.bridge = nn.LSTM(E, H, 2, batch_first=True, bidirectional=True, dropout=0.2), nn.Linear(2 * H, H)

    def forward(self, ids, lengths):
        out, (h, c) = self.lstm(pack_padded_sequence(self.drop(self.words(ids)), lengths, batch_first=True, enforce_sorted=False))
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, tuple(torch.tanh(self.bridge(torch.cat([v[-2], v[-1]], 1))) for v in (h, c))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(V, E)
        self.key, self.query, self.score = nn.Linear(2 * H, H), nn.Linear(H, H), nn.Linear(H, 1)
        self.cell, self.out = nn.LSTMCell(E + 2 * H, H), nn.Linear(3 * H + E, V)

    def forward(self, word, state, memory, keys, mask):
        x = self.words(word)
        weight = self.score(torch.tanh(keys + self.query(state[0])[:, None])).squeeze(-1)
        context = torch.bmm(weight.masked_fill(~mask, float("-inf")).softmax(1)[:, None], memory).squeeze(1)
        state = self.cell(torch.cat([x, context], 1), state)
        return self.out(torch.cat([state[0], context, x], 1)), state


encoder, decoder = Encoder().cuda(), Decoder().cuda()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)
for step in range(8):
    longest, out_length = (28, 24) if step % 2 else (40, 32)
    lengths = torch.randint(longest // 2, longest + 1, (48,))
    lengths[0] = longest
    mask = torch.arange(longest)[None] < lengths[:, None]
    source = (torch.randint(1, V, (48, longest)) * mask).cuda()
    target, mask = torch.randint(1, V, (48, out_length)).cuda(), mask.cuda()
    memory, state = encoder(source, lengths)
    keys, word, loss = decoder.key(memory), target[:, 0], 0
    for t in range(1, out_length):
        logits, state = decoder(word, state, memory, keys, mask)
        loss = loss + F.cross_entropy(logits, target[:, t])
        word = target[:, t] if random.random() < 0.6 else logits.argmax(1)
    optimizer.zero_grad()
    (loss / (out_length - 1)).backward()
    nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1.0)
    optimizer.step()
    print(step, loss.item() / (out_length - 1))
encoder.eval()
decoder.eval()
with torch.no_grad():
    lengths = torch.full((80,), 36)
    memory, state = encoder(torch.randint(1, V, (80, 36), device="cuda"), lengths)
    keys, word, mask = decoder.key(memory), torch.ones(80, dtype=torch.long, device="cuda"), torch.ones(80, 36, dtype=torch.bool, device="cuda")
    for t in range(30):
        logits, state = decoder(word, state, memory, keys, mask)
        word = logits.argmax(1)
    print(word.float().mean().item())
