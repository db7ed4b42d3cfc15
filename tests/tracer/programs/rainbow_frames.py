"""Rainbow on frames: a replay on the host with priorities, noisy layers, an advantage and a value, distributions of returns projected onto atoms, a target network that is copied."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1317)
ATOMS, ACTIONS, LOW, HIGH = 51, 18, -10.0, 10.0


class Noisy(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.i, self.o = i, o
        self.w, self.ws = nn.Parameter(torch.empty(o, i).uniform_(-i ** -0.5, i ** -0.5)), nn.Parameter(torch.full((o, i), 0.5 * i ** -0.5))
        self.b, self.bs = nn.Parameter(torch.zeros(o)), nn.Parameter(torch.full((o,), 0.5 * o ** -0.5))
        self.register_buffer("ew", torch.zeros(o, i))
        self.register_buffer("eb", torch.zeros(o))

    def draw(self):
        a, b = (torch.randn(n, device=self.w.device) for n in (self.i, self.o))
        a, b = a.sign() * a.abs().sqrt(), b.sign() * b.abs().sqrt()
        self.ew.copy_(b.outer(a))
        self.eb.copy_(b)

    def forward(self, x):
        return F.linear(x, self.w + self.ws * self.ew, self.b + self.bs * self.eb) if self.training else F.linear(x, self.w, self.b)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
        self.v, self.a = nn.ModuleList([Noisy(3136, 1024), Noisy(1024, ATOMS)]), nn.ModuleList([Noisy(3136, 1024), Noisy(1024, ACTIONS * ATOMS)])

    def forward(self, x, log=False):
        x = self.look(x.float() / 255)
        v, a = self.v[1](F.relu(self.v[0](x))).view(-1, 1, ATOMS), self.a[1](F.relu(self.a[0](x))).view(-1, ACTIONS, ATOMS)
        q = v + a - a.mean(1, keepdim=True)
        return F.log_softmax(q, 2) if log else F.softmax(q, 2)

    def draw(self):
        for m in self.modules():
            if isinstance(m, Noisy):
                m.draw()


net = Net().cuda()
target = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), 6.25e-5, eps=1.5e-4)
support = torch.linspace(LOW, HIGH, ATOMS, device="cuda")
frames = torch.randint(0, 256, (4000, 84, 84), dtype=torch.uint8)
priority = torch.ones(3990)
for step in range(24):
    if step % 8 == 0:
        target.load_state_dict(net.state_dict())
    net.draw()
    with torch.no_grad():
        state = torch.stack([frames[k:k + 4] for k in range(16)]).cuda()
        action = (net(state) * support).sum(2).argmax(1).cpu()
    at = torch.multinomial(priority, 256)
    states = torch.stack([frames[k:k + 4] for k in at.tolist()]).cuda()
    later = torch.stack([frames[k + 3:k + 7] for k in at.tolist()]).cuda()
    actions, returns, going = torch.randint(0, ACTIONS, (256,)).cuda(), torch.randn(256).cuda(), (torch.rand(256, 1) < 0.97).float().cuda()
    chosen = net(states, log=True)[range(256), actions]
    with torch.no_grad():
        best = (net(later) * support).sum(2).argmax(1)
        target.draw()
        after = target(later)[range(256), best]
        tz = (returns[:, None] + going * 0.99 ** 3 * support[None]).clamp(LOW, HIGH)
        b = (tz - LOW) / ((HIGH - LOW) / (ATOMS - 1))
        low, high = b.floor().long(), b.ceil().long()
        m = torch.zeros(256, ATOMS, device="cuda")
        offset = torch.linspace(0, 255 * ATOMS, 256, device="cuda").long()[:, None].expand(256, ATOMS)
        m.view(-1).index_add_(0, (low + offset).view(-1), (after * (high.float() - b)).view(-1))
        m.view(-1).index_add_(0, (high + offset).view(-1), (after * (b - low.float())).view(-1))
    loss = -(m * chosen).sum(1)
    weights = (1 / (priority[at] * 3990)).cuda()
    optimizer.zero_grad()
    (weights / weights.max() * loss).mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    optimizer.step()
    priority[at] = 0.5
    print(step, loss.mean().item(), action.shape)
