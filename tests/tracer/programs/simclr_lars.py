"""Contrastive learning of pictures (SimCLR): torchvision's ResNet-34, two views made on the card, a large temperature-scaled loss, LARS by hand, then a linear probe."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(819)
body = torchvision.models.resnet34(weights=None)
body.fc = nn.Identity()
body = body.cuda()
head = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(inplace=True), nn.Linear(512, 128, bias=False)).cuda()


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9, decay=1e-6, trust=1e-3):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, trust=trust))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                d = p.grad
                if p.ndim > 1:
                    d = d.add(p, alpha=g["decay"])
                    a, b = torch.norm(p), torch.norm(d)
                    one = torch.ones_like(a)
                    d = d.mul(torch.where(a > 0.0, torch.where(b > 0, g["trust"] * a / b, one), one))
                s = self.state[p]
                if "mu" not in s:
                    s["mu"] = torch.zeros_like(p)
                s["mu"].mul_(g["momentum"]).add_(d)
                p.add_(s["mu"], alpha=-g["lr"])


def view(x):
    x = x[:, :, 8:104, 4:100] if torch.rand(()) < 0.5 else F.interpolate(x, size=96, mode="bilinear")
    gain = 0.6 + 0.8 * torch.rand(len(x), 1, 1, 1, device=x.device)
    x = (x * gain).clamp(0, 1)
    gray = x.mean(1, keepdim=True).expand_as(x)
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.2, gray, x)


optimizer = LARS([*body.parameters(), *head.parameters()], 0.3)
for step in range(5):
    x = torch.rand(96, 3, 112, 112).cuda()
    z = F.normalize(head(body(torch.cat([view(x), view(x)]))), dim=1)
    similar = z @ z.t() / 0.1
    similar.masked_fill_(torch.eye(192, dtype=torch.bool, device="cuda"), float("-inf"))
    target = torch.arange(192, device="cuda").roll(96)
    loss = F.cross_entropy(similar, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
body.eval()
probe = nn.Linear(512, 10).cuda()
optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=5)
with torch.no_grad():
    known = torch.cat([body(torch.rand(128, 3, 96, 96).cuda()) for _ in range(3)])
labels = torch.randint(0, 10, (384,)).cuda()


def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(probe(known), labels)
    loss.backward()
    return loss


print(optimizer.step(closure).item())
