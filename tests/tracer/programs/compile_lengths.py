"""A compiled encoder, dynamic=True, trained on sentences of many lengths with a compiled step of the optimizer."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(77)


class Encoder(nn.Module):
    def __init__(self, width=384, heads=6):
        super().__init__()
        self.embed, self.heads = nn.Embedding(8000, width), heads
        self.layers = nn.ModuleList([nn.ModuleDict({"a": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "b": nn.LayerNorm(width),
                                                    "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}) for _ in range(5)])
        self.head = nn.Linear(width, 8000)

    def forward(self, ids):
        x = self.embed(ids)
        for m in self.layers:
            b, t, w = x.shape
            q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in m["qkv"](m["a"](x)).chunk(3, dim=-1))
            x = x + m["out"](F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
            x = x + m["down"](F.gelu(m["up"](m["b"](x))))
        return self.head(x)


model = Encoder().cuda()
compiled = torch.compile(model, dynamic=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(9):
    length = (192, 256, 160, 320, 224)[step % 5]
    ids = torch.randint(0, 8000, (12, length)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits = compiled(ids)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
