"""A policy as a sequence: returns, states and actions interleaved in a causal transformer, episodes of several lengths padded on the left, AdamW with two groups, then acting step by step with a window."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(404)
STATE, ACTION = 39, 28


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.net = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1 if self.training else 0.0)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.net(self.n2(x))


class Decision(nn.Module):
    def __init__(self, width=384, layers=6, heads=6, longest=1000):
        super().__init__()
        self.time = nn.Embedding(longest, width)
        self.r, self.s, self.a, self.norm = nn.Linear(1, width), nn.Linear(STATE, width), nn.Linear(ACTION, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.act, self.value, self.next = nn.Linear(width, ACTION), nn.Linear(width, 1), nn.Linear(width, STATE)

    def forward(self, r, s, a, t, real):
        b, n = t.shape
        time = self.time(t)
        x = torch.stack([self.r(r) + time, self.s(s) + time, self.a(a) + time], 2).view(b, 3 * n, -1)
        keep = real.repeat_interleave(3, 1)
        mask = torch.tril(torch.ones(3 * n, 3 * n, dtype=torch.bool, device=x.device)) & keep[:, None, None, :]
        mask = mask | torch.eye(3 * n, dtype=torch.bool, device=x.device)
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        x = x.view(b, n, 3, -1)
        return self.act(x[:, :, 1]).tanh(), self.value(x[:, :, 2]), self.next(x[:, :, 2])


model = Decision().cuda()
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], 1e-4, amsgrad=True)
for step in range(6):
    n = (20, 32, 26)[step % 3]
    r, s, a = torch.rand(64, n, 1, device="cuda"), torch.randn(64, n, STATE, device="cuda"), torch.rand(64, n, ACTION, device="cuda") * 2 - 1
    t = torch.arange(n, device="cuda").expand(64, -1) + torch.randint(0, 900, (64, 1), device="cuda")
    real = torch.arange(n, device="cuda")[None] >= torch.randint(0, n // 2, (64, 1), device="cuda")
    action, value, following = model(r, s, a, t, real)
    weight = real[..., None].float()
    loss = ((action - a).pow(2) * weight).sum() / weight.sum() + 0.1 * F.smooth_l1_loss(value, r) + 0.1 * F.mse_loss(following[:, :-1], s[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    r, s, a, t = torch.ones(256, 1, 1, device="cuda"), torch.randn(256, 1, STATE, device="cuda"), torch.zeros(256, 1, ACTION, device="cuda"), torch.zeros(256, 1, dtype=torch.long, device="cuda")
    for tick in range(24):
        w = slice(-20, None)
        action = model(r[:, w], s[:, w], a[:, w], t[:, w], torch.ones_like(t[:, w], dtype=torch.bool))[0][:, -1]
        a = torch.cat([a[:, :-1], action[:, None], torch.zeros_like(a[:, :1])], 1)
        s = torch.cat([s, torch.tanh(s[:, -1:] + 0.1)], 1)
        r, t = torch.cat([r, r[:, -1:] - 0.01], 1), torch.cat([t, t[:, -1:] + 1], 1)
    print(a.abs().mean().item())
