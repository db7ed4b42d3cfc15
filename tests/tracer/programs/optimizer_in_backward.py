"""Full fine-tuning with little memory: each parameter is updated in a hook as soon as its gradient is there, moments of low rank as in GaLore."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

torch.manual_seed(119)
WIDTH, VOCABULARY = 1280, 24000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = [y.view(b, t, 20, -1).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.silu(self.up(self.n2(x))))


class Projected:
    """Adam on a gradient that is projected on its first singular vectors, found again every few steps."""

    def __init__(self, p, rank=64, every=4, lr=1e-4):
        self.rank, self.every, self.lr, self.steps = rank, every, lr, 0
        self.basis = self.m = self.v = None

    @torch.no_grad()
    def __call__(self, p):
        g = p.grad.float()
        if self.steps % self.every == 0:
            self.basis = torch.svd_lowrank(g, q=self.rank, niter=1)[0]
        g = self.basis.t() @ g
        if self.m is None:
            self.m, self.v = torch.zeros_like(g), torch.zeros_like(g)
        self.steps += 1
        self.m.lerp_(g, 0.1)
        self.v.mul_(0.999).addcmul_(g, g, value=0.001)
        update = (self.m / (1 - 0.9**self.steps)) / ((self.v / (1 - 0.999**self.steps)).sqrt() + 1e-8)
        p.add_((self.basis @ update).to(p.dtype), alpha=-self.lr)
        p.grad = None


embed = nn.Embedding(VOCABULARY, WIDTH).bfloat16().cuda()
body = nn.Sequential(*[Layer() for _ in range(12)]).bfloat16().cuda()
head = nn.Sequential(nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)).bfloat16().cuda()
rules = {}
for p in [*embed.parameters(), *body.parameters(), *head.parameters()]:
    if p.ndim == 2 and p.shape[0] < 8192:
        rules[p] = Projected(p)
        p.register_post_accumulate_grad_hook(lambda p: rules[p](p))
    else:
        rules[p] = torch.optim.AdamW([p], lr=1e-4)

        def hook(p):
            rules[p].step()
            rules[p].zero_grad()

        p.register_post_accumulate_grad_hook(hook)
for step in range(6):
    t = (1024, 768, 1024, 896, 640, 1024)[step]
    ids = torch.randint(0, VOCABULARY, (4, t + 1)).cuda()
    x = checkpoint_sequential(body, 4, embed(ids[:, :-1]), use_reentrant=False)
    loss = F.cross_entropy(head(x).float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    torch.cuda.synchronize()
    print(step, t, loss.item())
