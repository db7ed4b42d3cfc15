"""A small Llama by hand compiled with torch.compile: rotary positions, grouped keys, SwiGLU, bfloat16 autocast, fused AdamW, gradients of two parts added, evaluation without gradients that is compiled again."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1220)
D, HEADS, GROUPS, LAYERS, VOCAB, LENGTH = 512, 8, 2, 6, 20000, 512


def rotate(x, angles):
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        size = D // HEADS
        self.n1, self.n2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.kv, self.o = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * GROUPS * size, bias=False), nn.Linear(D, D, bias=False)
        self.gate, self.up, self.down = nn.Linear(D, 1408, bias=False), nn.Linear(D, 1408, bias=False), nn.Linear(1408, D, bias=False)

    def forward(self, x, angles):
        b, t, _ = x.shape
        y = self.n1(x)
        q = self.q(y).view(b, t, HEADS, -1).transpose(1, 2)
        k, v = self.kv(y).view(b, t, 2 * GROUPS, -1).transpose(1, 2).chunk(2, 1)
        y = F.scaled_dot_product_attention(rotate(q, angles), rotate(k, angles), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, D))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks = nn.Embedding(VOCAB, D), nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(D), nn.Linear(D, VOCAB, bias=False)
        f = 10000 ** (-torch.arange(0, D // HEADS, 2) / (D // HEADS))
        self.register_buffer("angles", torch.outer(torch.arange(LENGTH), f))

    def forward(self, ids, targets):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.angles[:ids.shape[1]])
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


net = Net().cuda()
fast = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters(), 3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
for step in range(8):
    for part in range(2):
        ids = torch.randint(0, VOCAB, (16, LENGTH + 1)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = fast(ids[:, :-1], ids[:, 1:]) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for _ in range(3):
        ids = torch.randint(0, VOCAB, (32, LENGTH + 1), device="cuda")
        print(fast(ids[:, :-1], ids[:, 1:]).item())
