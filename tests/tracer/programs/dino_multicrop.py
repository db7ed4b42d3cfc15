"""DINO: a student sees two large and six small crops, a teacher of moving averages the large ones; heads with weight norm, centred and sharpened targets, positions interpolated for small crops."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1005)
D = 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.qkv, self.out = nn.LayerNorm(D), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.token, self.place = nn.Conv2d(3, D, 16, 16), nn.Parameter(torch.zeros(1, 1, D)), nn.Parameter(torch.randn(1, D, 14, 14) * 0.02)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(8)), nn.LayerNorm(D)

    def forward(self, x):
        x = self.patches(x)
        place = self.place if x.shape[-1] == 14 else F.interpolate(self.place, x.shape[-2:], mode="bicubic")
        x = torch.cat([self.token.expand(len(x), -1, -1), (x + place).flatten(2).transpose(1, 2)], 1)
        for b in self.blocks:
            x = b(x)
        return self.norm(x)[:, 0]


class Head(nn.Module):
    def __init__(self, outs=8192):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(D, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 256))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(256, outs, bias=False))

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


student = nn.Sequential(ViT(), Head()).cuda()
teacher = nn.Sequential(ViT(), Head()).cuda()
teacher.load_state_dict(copy.deepcopy(student.state_dict()))
teacher.requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), 5e-4)
center = torch.zeros(1, 8192, device="cuda")
for step in range(7):
    large = [torch.randn(24, 3, 224, 224, device="cuda") for _ in range(2)]
    small = [torch.randn(24, 3, 96, 96, device="cuda") for _ in range(6)]
    with torch.autocast("cuda", torch.bfloat16):
        with torch.no_grad():
            targets = [((t.float() - center) / 0.04).softmax(-1) for t in teacher(torch.cat(large)).chunk(2)]
        views = [*student(torch.cat(large)).chunk(2), *student(torch.cat(small)).chunk(6)]
        losses = [(-t * (v.float() / 0.1).log_softmax(-1)).sum(-1).mean() for i, t in enumerate(targets) for j, v in enumerate(views) if i != j]
        loss = sum(losses) / len(losses)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        center.mul_(0.9).add_(torch.cat(targets).mean(0, keepdim=True), alpha=0.1)
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.lerp_(b, 0.004)
    print(step, loss.item())
features = []
with torch.inference_mode():
    for batch in (64, 64, 40):
        features.append(F.normalize(teacher[0](torch.randn(batch, 3, 224, 224, device="cuda")), dim=-1))
bank = torch.cat(features)
print((bank @ bank.T).topk(10).values.mean().item())
