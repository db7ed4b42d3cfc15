"""A Whisper written out with a head that tells the language beside the text: AdamW tensor by tensor, products of float32 in TF32, two parts of 16 a step, gradients clipped by value, averaged weights are evaluated."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1416)
torch.set_float32_matmul_precision("high")
D, HEADS, V = 384, 6, 9000


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(D, D), nn.Linear(D, D, bias=False), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x, y=None, causal=False):
        y = x if y is None else y
        q, k, v = (f(z).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f, z in ((self.q, x), (self.k, y), (self.v, y)))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.own, self.n1, self.n3 = Attention(), nn.LayerNorm(D), nn.LayerNorm(D)
        self.other, self.n2 = (Attention(), nn.LayerNorm(D)) if cross else (None, None)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x, sound=None):
        x = x + self.own(self.n1(x), causal=sound is not None)
        if sound is not None:
            x = x + self.other(self.n2(x), sound)
        return x + self.down(F.gelu(self.up(self.n3(x))))


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, D, 3, padding=1), nn.Conv1d(D, D, 3, stride=2, padding=1)
        self.register_buffer("place", torch.randn(500, D) * 0.02)
        self.ears, self.mouth = nn.ModuleList(Layer(False) for _ in range(4)), nn.ModuleList(Layer(True) for _ in range(3))
        self.words, self.at, self.n1, self.n2 = nn.Embedding(V, D), nn.Embedding(128, D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.weight, self.language = nn.Linear(D, 1), nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Dropout(0.1), nn.Linear(D, 40))

    def forward(self, mel, ids):
        x = F.gelu(self.c2(F.gelu(self.c1(mel)))).transpose(1, 2) + self.place
        for layer in self.ears:
            x = layer(x)
        x = self.n1(x)
        language = self.language((self.weight(x).softmax(1) * x).sum(1))
        y = self.words(ids) + self.at(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.mouth:
            y = layer(y, x)
        return F.linear(self.n2(y), self.words.weight), language


model = Whisper().cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.98), foreach=False)
model.train()
for step in range(5):
    for part in range(2):
        mel, ids, tongue = torch.randn(16, 80, 1000).cuda(), torch.randint(0, V, (16, 49 + 8 * part)).cuda(), torch.randint(0, 40, (16,)).cuda()
        text, language = model(mel, ids[:, :-1])
        loss = (F.cross_entropy(text.flatten(0, 1), ids[:, 1:].flatten()) + 0.2 * F.cross_entropy(language, tongue)) / 2
        loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(step, 2 * loss.item())
average.eval()
with torch.no_grad():
    mel, ids = torch.randn(16, 80, 1000).cuda(), torch.zeros(16, 1, dtype=torch.long).cuda()
    for _ in range(12):
        text, language = average(mel, ids)
        ids = torch.cat([ids, text[:, -1:].argmax(-1)], 1)
    print(ids.shape, language.argmax(1).shape)
