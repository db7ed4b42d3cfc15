"""Activations wait in pinned host memory: save_on_cpu around each layer, own hooks that pack to half precision."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 8, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.mix(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


def pack(tensor):
    if tensor.is_floating_point() and tensor.numel() > 1 << 16 and not isinstance(tensor, nn.Parameter):
        return tensor.dtype, tensor.half()
    return None, tensor


def unpack(packed):
    dtype, tensor = packed
    return tensor if dtype is None else tensor.to(dtype)


torch.manual_seed(35)
layers = nn.ModuleList(Layer(768) for _ in range(6)).cuda()
head = nn.Linear(768, 1000).cuda()
optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-4)
for step in range(6):
    x = torch.randn(16, 512 if step % 2 else 384, 768, device="cuda")
    y = torch.randint(0, 1000, (16,), device="cuda")
    for i, layer in enumerate(layers):
        with save_on_cpu(pin_memory=True) if i < 3 else saved_tensors_hooks(pack, unpack):
            x = layer(x)
    loss = F.cross_entropy(head(x.mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
