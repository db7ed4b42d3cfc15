"""A language model on long sequences: grouped queries, rotary positions, layers checkpointed, loss in chunks, master weights by hand."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(107)
WIDTH, HEADS, GROUPS, HIDDEN, VOCABULARY = 1024, 16, 4, 2816, 50000


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * GROUPS * 64, bias=False)
        self.o, self.w13, self.w2 = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        y = self.n1(x)
        q = self.q(y).view(b, t, HEADS, 64).transpose(1, 2)
        k, v = self.kv(y).view(b, t, 2, GROUPS, 64).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, WIDTH))
        a, g = self.w13(self.n2(x)).chunk(2, -1)
        return x + self.w2(F.silu(a) * g)


class Model(nn.Module):
    def __init__(self, layers=10):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, labels):
        t = ids.shape[1]
        angles = torch.outer(torch.arange(t, device=ids.device).float(), 1e6 ** (-torch.arange(0, 64, 2, device=ids.device) / 64))
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, cos, sin, use_reentrant=False)
        x = self.norm(x).flatten(0, 1)
        total = 0.0
        for h, y in zip(x.split(2048), labels.flatten().split(2048)):
            total = total + checkpoint(lambda h, y: F.cross_entropy(self.head(h).float(), y, reduction="sum"), h, y, use_reentrant=True)
        return total / labels.numel()


model = Model().to(torch.bfloat16).cuda()
masters = [p.detach().float().clone().requires_grad_(True) for p in model.parameters()]
optimizer = torch.optim.AdamW(masters, lr=3e-4, betas=(0.9, 0.95))
for step in range(5):
    t = (16384, 8192, 12288, 16384, 10240)[step]
    for micro in range(2):
        ids = torch.randint(0, VOCABULARY, (1, t + 1)).cuda()
        loss = model(ids[:, :-1], ids[:, 1:]) / 2
        loss.backward()
    for m, p in zip(masters, model.parameters()):
        m.grad, p.grad = p.grad.float(), None
    norm = nn.utils.clip_grad_norm_(masters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        torch._foreach_copy_(list(model.parameters()), masters)
    print(step, t, loss.item(), norm.item())
