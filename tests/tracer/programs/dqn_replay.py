"""Deep Q-learning on stacked frames: a replay buffer of bytes in pinned memory, priorities drawn again, a dueling network and its slow target, a distribution of returns."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(209)
torch.manual_seed(209)
ACTIONS, ATOMS, BUFFER = 18, 51, 4000


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.eyes = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, ATOMS))
        self.edge = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, ACTIONS * ATOMS))

    def forward(self, frames):
        x = self.eyes(frames.float().div_(255))
        edge = self.edge(x).view(-1, ACTIONS, ATOMS)
        return (self.value(x)[:, None] + edge - edge.mean(1, keepdim=True)).log_softmax(-1)


online, slow = Network().cuda(), Network().cuda().requires_grad_(False)
slow.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=6e-5, eps=1.5e-4)
atoms = torch.linspace(-10, 10, ATOMS, device="cuda")
frames = torch.zeros(BUFFER, 84, 84, dtype=torch.uint8).pin_memory()
actions, rewards, ends = torch.zeros(BUFFER, dtype=torch.long), torch.zeros(BUFFER), torch.zeros(BUFFER)
priorities = torch.zeros(BUFFER, device="cuda")
filled = 0


def stack(rows):
    return torch.stack([frames[rows - k] for k in range(3, -1, -1)], 1).cuda(non_blocking=True)


def act(n, explore):
    global filled
    for _ in range(n):
        i = filled % BUFFER
        frames[i].random_(0, 256)
        if i > 3 and random.random() > explore:
            with torch.no_grad():
                a = (online(stack(torch.tensor([i]))).exp() * atoms).sum(-1).argmax(1).item()
        else:
            a = random.randrange(ACTIONS)
        actions[i], rewards[i], ends[i] = a, random.choice((-1.0, 0.0, 1.0)), random.random() < 0.01
        priorities[i] = 1.0
        filled += 1


def learn(batch):
    usable = priorities[4:filled - 1] ** 0.5
    rows = torch.multinomial(usable, batch, replacement=True)
    weight = (usable[rows] / usable.sum() * len(usable)) ** -0.4
    rows = rows.cpu() + 4
    now, then = stack(rows), stack((rows + 1).clamp(max=BUFFER - 1))
    with torch.no_grad():
        best = (online(then).exp() * atoms).sum(-1).argmax(1)
        after = slow(then)[torch.arange(batch), best].exp()
        moved = (rewards[rows].cuda()[:, None] + 0.99 * (1 - ends[rows].cuda())[:, None] * atoms).clamp(-10, 10)
        place = (moved + 10) / (20 / (ATOMS - 1))
        low, high = place.floor().long(), place.ceil().long()
        target = torch.zeros_like(after)
        target.scatter_add_(1, low, after * (high - place + (low == high).float()))
        target.scatter_add_(1, high, after * (place - low))
    found = online(now)[torch.arange(batch), actions[rows].cuda()]
    each = -(target * found).sum(1)
    loss = (weight / weight.max() * each).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    priorities[rows.cuda()] = each.detach() + 1e-6
    return loss


act(1200, 1.0)
for step in range(24):
    act(8, 0.5)
    loss = learn(512 if step % 8 else 1024)
    if step % 6 == 5:
        slow.load_state_dict(online.state_dict())
        print(step, loss.item())
