"""Speech from text: convolutions and a packed LSTM read letters, two LSTM cells with attention by place draw frames, a network after them, then synthesis until a limit."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(210)
MELS = 80


class Attention(nn.Module):
    def __init__(self, query=768, memory=384, inner=128):
        super().__init__()
        self.query, self.memory, self.score = nn.Linear(query, inner, bias=False), nn.Linear(memory, inner, bias=False), nn.Linear(inner, 1, bias=False)
        self.place, self.enter = nn.Conv1d(2, 32, 31, padding=15, bias=False), nn.Linear(32, inner, bias=False)

    def forward(self, query, keys, memory, weights, mask):
        place = self.enter(self.place(weights).transpose(1, 2))
        score = self.score(torch.tanh(self.query(query)[:, None] + keys + place)).squeeze(-1)
        a = score.masked_fill(mask, -torch.inf).softmax(1)
        return torch.bmm(a[:, None], memory).squeeze(1), a


class Speech(nn.Module):
    def __init__(self, letters=80, width=384):
        super().__init__()
        self.letters = nn.Embedding(letters, width, padding_idx=0)
        self.convs = nn.Sequential(*[m for _ in range(3) for m in (nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.5))])
        self.read = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.before = nn.ModuleList([nn.Linear(MELS, 256), nn.Linear(256, 256)])
        self.one, self.two = nn.LSTMCell(256 + width, 768), nn.LSTMCell(768 + width, 768)
        self.attend, self.frame, self.stop = Attention(), nn.Linear(768 + width, MELS), nn.Linear(768 + width, 1)
        self.after = nn.Sequential(*[m for a, b in ((MELS, 384), (384, 384), (384, MELS)) for m in (nn.Conv1d(a, b, 5, padding=2), nn.BatchNorm1d(b), nn.Tanh())])

    def forward(self, text, lengths, frames=None, limit=120):
        x = self.convs(self.letters(text).transpose(1, 2)).transpose(1, 2)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(self.read(packed)[0], batch_first=True)
        b, t, c = memory.shape
        mask = torch.arange(t, device=text.device) >= lengths.to(text.device)[:, None]
        keys, states = self.attend.memory(memory), [(x.new_zeros(b, 768), x.new_zeros(b, 768)) for _ in range(2)]
        context, last, total, frame = x.new_zeros(b, c), x.new_zeros(b, t), x.new_zeros(b, t), x.new_zeros(b, MELS)
        found, stops = [], []
        for i in range(limit if frames is None else frames.shape[1]):
            y = frame if frames is None or i == 0 else frames[:, i - 1]
            for layer in self.before:
                y = F.dropout(F.relu(layer(y)), 0.5, True)
            states[0] = self.one(torch.cat([y, context], 1), states[0])
            context, last = self.attend(states[0][0], keys, memory, torch.stack([last, total], 1), mask)
            total = total + last
            states[1] = self.two(torch.cat([states[0][0], context], 1), states[1])
            z = torch.cat([states[1][0], context], 1)
            frame = self.frame(z)
            found.append(frame)
            stops.append(self.stop(z))
        mel = torch.stack(found, 1)
        return mel, mel + self.after(mel.transpose(1, 2)).transpose(1, 2), torch.cat(stops, 1)


model = Speech().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
for step in range(5):
    lengths = torch.randint(30, 110, (32,))
    text = torch.randint(1, 80, (32, int(lengths.max())))
    text = text.masked_fill(torch.arange(text.shape[1]) >= lengths[:, None], 0)
    frames = torch.randint(50, 140, (32,))
    mel = torch.randn(32, int(frames.max()), MELS).cuda()
    ends = (torch.arange(mel.shape[1]) >= frames[:, None] - 1).float().cuda()
    first, second, stop = model(text.cuda(), lengths, mel)
    valid = (torch.arange(mel.shape[1]) < frames[:, None]).cuda()[..., None].expand_as(mel)
    loss = F.mse_loss(first[valid], mel[valid]) + F.mse_loss(second[valid], mel[valid]) + F.binary_cross_entropy_with_logits(stop, ends, pos_weight=torch.tensor(8.0, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    lengths = torch.tensor([90, 70, 40, 12])
    text = torch.randint(1, 80, (4, 90)).cuda()
    print(model(text, lengths)[1].shape)
