"""Soft mixture of experts in a vision transformer: every slot is a weighted mean of all patches, experts are batched products; AdamW, dropped patches, float16 with a scaler."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1002)
D, EXPERTS, SLOTS = 320, 16, 4


class SoftExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi, self.scale = nn.Parameter(torch.randn(D, EXPERTS, SLOTS) * 0.02), nn.Parameter(torch.ones(()))
        self.a, self.b = nn.Parameter(torch.randn(EXPERTS, D, 3 * D) * 0.02), nn.Parameter(torch.randn(EXPERTS, 3 * D, D) * 0.02)

    def forward(self, x):
        logits = torch.einsum("bnd,des->bnes", F.normalize(x.float(), dim=-1), self.scale * F.normalize(self.phi, dim=0))
        dispatch, combine = logits.softmax(1), logits.flatten(2).softmax(-1).view_as(logits)
        slots = torch.einsum("bnd,bnes->besd", x, dispatch.to(x.dtype))
        made = torch.einsum("besh,ehd->besd", F.gelu(torch.einsum("besd,edh->besh", slots, self.a)), self.b)
        return torch.einsum("besd,bnes->bnd", made, combine.to(made.dtype))


class Block(nn.Module):
    def __init__(self, soft):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = nn.MultiheadAttention(D, 5, batch_first=True)
        self.mlp = SoftExperts() if soft else nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        y = self.n1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.place = nn.Conv2d(3, D, 16, 16), nn.Parameter(torch.randn(1, 196, D) * 0.02)
        self.blocks, self.norm, self.head = nn.ModuleList(Block(i >= 4) for i in range(8)), nn.LayerNorm(D), nn.Linear(D, 100)

    def forward(self, x, keep=196):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        if keep < 196:
            order = torch.rand(x.shape[:2], device=x.device).argsort(1)[:, :keep]
            x = x.gather(1, order[..., None].expand(-1, -1, D))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x).mean(1))


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), 3e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for step in range(9):
    x, y = torch.randn(40, 3, 224, 224).cuda(), torch.randint(0, 100, (40,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(net(x, 196 if step % 3 == 2 else 98), y, label_smoothing=0.1)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
net.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for batch in (64, 96, 50):
        print(net(torch.randn(batch, 3, 224, 224, device="cuda")).argmax(1).float().mean().item())
