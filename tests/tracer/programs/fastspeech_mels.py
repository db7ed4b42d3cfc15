"""Mel spectra from phonemes as FastSpeech 2: durations stretch the phonemes, pitch and energy are predicted and embedded, batches of different lengths, a warm-up rate, then speech at another pace."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(1320)
W = 256


class FFT(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.n1, self.n2 = nn.MultiheadAttention(W, 2, 0.1, batch_first=True), nn.LayerNorm(W), nn.LayerNorm(W)
        self.c1, self.c2 = nn.Conv1d(W, 1024, 9, padding=4), nn.Conv1d(1024, W, 1)

    def forward(self, x, gone):
        y, _ = self.attend(x, x, x, key_padding_mask=gone, need_weights=False)
        x = self.n1(x + F.dropout(y, 0.1, self.training)).masked_fill(gone[..., None], 0)
        y = self.c2(F.relu(self.c1(x.transpose(1, 2)))).transpose(1, 2)
        return self.n2(x + F.dropout(y, 0.1, self.training)).masked_fill(gone[..., None], 0)


class Predict(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n1, self.n2, self.out = nn.Conv1d(W, W, 3, padding=1), nn.Conv1d(W, W, 3, padding=1), nn.LayerNorm(W), nn.LayerNorm(W), nn.Linear(W, 1)

    def forward(self, x, gone):
        x = F.dropout(self.n1(F.relu(self.a(x.transpose(1, 2))).transpose(1, 2)), 0.5, self.training)
        x = F.dropout(self.n2(F.relu(self.b(x.transpose(1, 2))).transpose(1, 2)), 0.5, self.training)
        return self.out(x).squeeze(-1).masked_fill(gone, 0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.phones, self.place = nn.Embedding(80, W, padding_idx=0), nn.Parameter(torch.randn(1, 1200, W) * 0.02)
        self.enc, self.dec = nn.ModuleList(FFT() for _ in range(4)), nn.ModuleList(FFT() for _ in range(4))
        self.long, self.pitch, self.energy = Predict(), Predict(), Predict()
        self.pitches, self.energies = nn.Embedding(256, W), nn.Embedding(256, W)
        self.register_buffer("bins", torch.linspace(-3, 3, 255))
        self.mel = nn.Linear(W, 80)
        self.post = nn.Sequential(nn.Conv1d(80, 512, 5, padding=2), nn.BatchNorm1d(512), nn.Tanh(), nn.Conv1d(512, 512, 5, padding=2), nn.BatchNorm1d(512), nn.Tanh(), nn.Conv1d(512, 80, 5, padding=2))

    def forward(self, ids, durations, pitch=None, energy=None):
        gone = ids == 0
        x = self.phones(ids) + self.place[:, :ids.shape[1]]
        for layer in self.enc:
            x = layer(x, gone)
        guess = [self.long(x, gone), self.pitch(x, gone), self.energy(x, gone)]
        x = x + self.pitches(torch.bucketize(guess[1] if pitch is None else pitch, self.bins)) + self.energies(torch.bucketize(guess[2] if energy is None else energy, self.bins))
        x = pad_sequence([torch.repeat_interleave(row, d, dim=0) for row, d in zip(x, durations)], batch_first=True)
        total = durations.sum(1)
        gone = torch.arange(x.shape[1], device=x.device)[None] >= total[:, None]
        x = x + self.place[:, :x.shape[1]]
        for layer in self.dec:
            x = layer(x, gone)
        mel = self.mel(x)
        return mel, mel + self.post(mel.transpose(1, 2)).transpose(1, 2), guess, gone


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), 1e-3, betas=(0.9, 0.98), eps=1e-9)
rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) ** -0.5, (n + 1) * 4 ** -1.5))
for step in range(7):
    lengths = [60 + (17 * step + 11 * k) % 61 for k in range(24)]
    ids = pad_sequence([torch.randint(1, 80, (n,)) for n in lengths], batch_first=True)
    durations = torch.randint(3, 9, ids.shape) * (ids > 0)
    ids, durations = ids.cuda(), durations.cuda()
    pitch, energy = torch.randn(ids.shape).cuda(), torch.randn(ids.shape).cuda()
    before, after, guess, gone = net(ids, durations, pitch, energy)
    mels, keep = torch.randn(before.shape, device="cuda"), ~gone[..., None]
    loss = F.l1_loss(before.masked_select(keep), mels.masked_select(keep)) + F.l1_loss(after.masked_select(keep), mels.masked_select(keep))
    there = ids > 0
    for g, truth in zip(guess, (torch.log(durations.float() + 1), pitch, energy)):
        loss = loss + F.mse_loss(g.masked_select(there), truth.masked_select(there))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    rate.step()
    print(step, loss.item())
net.eval()
with torch.no_grad():
    ids = torch.randint(1, 80, (4, 90)).cuda()
    print(net(ids, torch.full((4, 90), 7, device="cuda"))[1].shape)
