"""Speech without labels: strided 1-D convolutions on raw audio, a grouped positional convolution, masked spans, codes by Gumbel, negatives."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(117)
torch.manual_seed(117)


class Features(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        shapes = [(1, 10, 5)] + [(width, 3, 2)] * 4 + [(width, 2, 2)] * 2
        self.convs = nn.ModuleList(nn.Conv1d(c, width, k, s, bias=False) for c, k, s in shapes)
        self.first, self.last = nn.GroupNorm(width, width), nn.LayerNorm(width)

    def forward(self, x):
        x = x.unsqueeze(1)
        for i, c in enumerate(self.convs):
            x = c(x)
            x = F.gelu(self.first(x) if i == 0 else x)
        return self.last(x.transpose(1, 2))


class Model(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.features, self.enter = Features(), nn.Linear(384, width)
        self.masked = nn.Parameter(torch.rand(width))
        self.place = nn.utils.parametrizations.weight_norm(nn.Conv1d(width, width, 128, padding=64, groups=16), dim=2)
        layer = nn.TransformerEncoderLayer(width, 8, 2048, 0.1, "gelu", batch_first=True)
        self.encoder, self.norm = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.LayerNorm(width)
        self.logits, self.codes = nn.Linear(384, 640), nn.Parameter(torch.rand(2, 320, 128))
        self.target, self.out = nn.Linear(256, 256), nn.Linear(width, 256)

    def forward(self, audio, spans):
        f = self.features(audio)
        b, t, _ = f.shape
        mask = torch.zeros(b, t, dtype=torch.bool)
        for i, starts in enumerate(spans):
            for s in starts:
                mask[i, s : min(s + 10, t)] = True
        mask = mask.cuda()
        x = F.dropout(self.enter(f), 0.1, self.training)
        x[mask] = self.masked.to(x.dtype)
        x = x + F.gelu(self.place(x.transpose(1, 2))[..., :-1]).transpose(1, 2)
        x = self.encoder(self.norm(x))
        logits = self.logits(f[mask]).view(-1, 2, 320).float()
        choice = F.gumbel_softmax(logits, tau=2.0, hard=True)
        q = torch.einsum("ngk,gkd->ngd", choice, self.codes.float()).flatten(1)
        q, c = self.target(q), self.out(x[mask])
        n = q.shape[0]
        others = torch.randint(0, n - 1, (n, 50), device=q.device)
        others = others + (others >= torch.arange(n, device=q.device)[:, None])
        candidates = torch.cat([q[:, None], q[others]], 1)
        scores = F.cosine_similarity(c[:, None].float(), candidates.float(), dim=-1) / 0.1
        p = logits.softmax(-1).mean(0)
        diversity = (640 - torch.exp(-(p * (p + 1e-7).log()).sum(-1)).sum()) / 640
        return F.cross_entropy(scores, torch.zeros(n, dtype=torch.long, device=q.device)) + 0.1 * diversity + 10 * f.float().pow(2).mean() * 0.1


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-6)
for step in range(7):
    seconds = (4, 6, 3, 5, 6, 2, 5)[step]
    audio = torch.randn(8, 16000 * seconds + random.randrange(1600)).cuda()
    frames = seconds * 49
    spans = [random.sample(range(frames), int(frames * 0.065)) for _ in range(8)]
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(audio, spans)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, seconds, loss.item())
