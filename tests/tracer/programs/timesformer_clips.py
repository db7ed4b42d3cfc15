"""Clips of video in a transformer: attention over time and over space apart, tubelets by a 3D convolution, bfloat16 weights with float32 copies in the optimizer, layers checkpointed selectively, frames dropped."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(406)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.qkv, self.out = heads, nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (a.reshape(b, t, self.heads, -1).transpose(1, 2) for a in (q, k, v))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, width=512, heads=8):
        super().__init__()
        self.time, self.space = Attention(width, heads), Attention(width, heads)
        self.net = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, s, w = x.shape
        x = x + self.time(x.transpose(1, 2).reshape(b * s, t, w)).view(b, s, t, w).transpose(1, 2)
        x = x + self.space(x.reshape(b * t, s, w)).view(b, t, s, w)
        return x + self.net(x)


class Video(nn.Module):
    def __init__(self, width=512, layers=8, classes=400):
        super().__init__()
        self.patch = nn.Conv3d(3, width, (2, 16, 16), (2, 16, 16))
        self.place, self.moment = nn.Parameter(torch.randn(1, 1, 196, width) * 0.02), nn.Parameter(torch.randn(1, 16, 1, width) * 0.02)
        self.layers, self.head = nn.ModuleList(Layer(width) for _ in range(layers)), nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, x):
        x = self.patch(x).flatten(3).permute(0, 2, 3, 1)
        x = x + self.place + self.moment[:, :x.shape[1]]
        for i, layer in enumerate(self.layers):
            x = checkpoint(layer, x, use_reentrant=False) if self.training and i % 2 == 0 else layer(x)
        return self.head(x.mean((1, 2)))


model = Video().cuda().bfloat16()
master = [p.detach().float().clone().requires_grad_(True) for p in model.parameters()]
optimizer = torch.optim.NAdam(master, 1e-4, decoupled_weight_decay=True, weight_decay=0.05)
for step in range(5):
    frames = (16, 12)[step % 2]
    x = torch.randn(4, 3, frames, 224, 224, device="cuda", dtype=torch.bfloat16)
    loss = F.cross_entropy(model(x).float(), torch.randint(0, 400, (4,), device="cuda"))
    loss.backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.float()
        p.grad = None
    nn.utils.clip_grad_norm_(master, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        torch._foreach_copy_(list(model.parameters()), master)
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    print(torch.stack([model(torch.randn(3, 3, 32, 224, 224, device="cuda", dtype=torch.bfloat16)).softmax(-1) for _ in range(2)]).mean(0).shape)
