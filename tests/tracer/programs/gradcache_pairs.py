"""Contrastive pairs with a large batch: embeddings in chunks without gradients, then each chunk again with its part of the gradient."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import get_device_states, set_device_states

torch.manual_seed(111)


class Text(nn.Module):
    def __init__(self, width=512, layers=6):
        super().__init__()
        self.embed, self.place = nn.Embedding(30000, width), nn.Parameter(torch.randn(96, width) * 0.01)
        layer = nn.TransformerEncoderLayer(width, 8, 2048, dropout=0.1, batch_first=True, norm_first=True, activation=F.gelu)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, ids):
        pad = ids == 0
        x = self.encoder(self.embed(ids) + self.place[: ids.shape[1]], src_key_padding_mask=pad)
        kept = (~pad).unsqueeze(-1).float()
        return F.normalize(self.head((x * kept).sum(1) / kept.sum(1)), dim=-1)


def batch(n, t):
    ids = torch.randint(1, 30000, (n, t))
    lengths = torch.randint(8, t + 1, (n, 1))
    return ids.masked_fill(torch.arange(t) >= lengths, 0).cuda()


class Noise:
    def __init__(self, *tensors):
        self.cpu, (self.devices, self.states) = torch.get_rng_state(), get_device_states(*tensors)

    def __enter__(self):
        self.fork = torch.random.fork_rng(devices=self.devices)
        self.fork.__enter__()
        torch.set_rng_state(self.cpu)
        set_device_states(self.devices, self.states)

    def __exit__(self, *a):
        self.fork.__exit__(*a)


query, passage = Text().cuda(), Text(layers=4).cuda()
scale = nn.Parameter(torch.tensor(2.6, device="cuda"))
weights = [*query.parameters(), *passage.parameters(), scale]
optimizer = torch.optim.AdamW(weights, lr=2e-5, weight_decay=0.01)
for step in range(5):
    a, b = batch(384, 32), batch(384, 96 if step % 2 == 0 else 80)
    states, out = [], []
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        for model, ids, size in ((query, a, 96), (passage, b, 64)):
            part, noise = [], []
            for c in ids.split(size):
                noise.append(Noise(c))
                part.append(model(c))
            out.append(torch.cat(part).float())
            states.append(noise)
    out = [o.detach().requires_grad_(True) for o in out]
    logits = out[0] @ out[1].t() * scale.exp()
    target = torch.arange(len(logits), device="cuda")
    loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
    loss.backward()
    for model, ids, size, o, noise in ((query, a, 96, out[0], states[0]), (passage, b, 64, out[1], states[1])):
        for c, g, s in zip(ids.split(size), o.grad.split(size), noise):
            with s, torch.autocast("cuda", torch.bfloat16):
                e = model(c)
            (e.float() * g).sum().backward()
    nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        scale.clamp_(max=4.6)
    print(step, loss.item())
