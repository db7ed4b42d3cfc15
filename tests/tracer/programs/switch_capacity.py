"""Experts with a fixed capacity: two experts a token, dispatch and combination by one-hot masks and einsum, as in GShard."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(108)
WIDTH, EXPERTS, HIDDEN = 512, 8, 2048


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.w1 = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * 0.02)
        self.w2 = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * 0.02)

    def forward(self, x):
        b, t, c = x.shape
        x = x.reshape(-1, c)
        n = x.shape[0]
        capacity = int(1.25 * 2 * n / EXPERTS)
        p = self.gate(x).float().softmax(-1)
        w1, e1 = p.max(-1)
        m1 = F.one_hot(e1, EXPERTS)
        e2 = p.masked_fill(m1.bool(), float("-inf")).argmax(-1)
        m2 = F.one_hot(e2, EXPERTS)
        w2 = p.gather(1, e2.unsqueeze(1)).squeeze(1)
        place1 = m1.cumsum(0) - 1
        place2 = m2.cumsum(0) - 1 + m1.sum(0, keepdim=True)
        balance = (p.mean(0) * m1.float().mean(0)).sum() * EXPERTS
        m1, m2 = m1 * (place1 < capacity), m2 * (place2 < capacity)
        where1, where2 = (place1 * m1).sum(1), (place2 * m2).sum(1)
        total = (w1 + w2).clamp(min=1e-9)
        g1, g2 = (w1 / total).unsqueeze(1) * m1, (w2 / total).unsqueeze(1) * m2
        combine = torch.einsum("ne,nc->nec", g1, F.one_hot(where1, capacity).float())
        combine = combine + torch.einsum("ne,nc->nec", g2, F.one_hot(where2, capacity).float())
        dispatch = combine.bool().to(x.dtype)
        h = torch.einsum("nec,nm->ecm", dispatch, x)
        h = torch.bmm(F.gelu(torch.bmm(h, self.w1)), self.w2)
        return torch.einsum("nec,ecm->nm", combine.to(h.dtype), h).view(b, t, c), balance


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.experts = nn.MultiheadAttention(WIDTH, 8, batch_first=True), Experts()

    def forward(self, x, mask):
        y = self.n1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False, is_causal=True)[0]
        y, balance = self.experts(self.n2(x))
        return x + y, balance


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(20000, WIDTH), nn.Parameter(torch.zeros(512, WIDTH))
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(4)), nn.LayerNorm(WIDTH)

    def forward(self, ids):
        t = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t, device=ids.device)
        x, balance = self.embed(ids) + self.place[:t], 0.0
        for layer in self.layers:
            x, b = layer(x, mask)
            balance = balance + b
        return self.norm(x) @ self.embed.weight.t(), balance


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(8):
    t = (256, 384, 192, 320)[step % 4]
    ids = torch.randint(0, 20000, (8, t + 1)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits, balance = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
