"""Soft actor-critic: a replay buffer on the card, a squashed Gaussian policy, twin critics as one batched ensemble with targets, a learned temperature, many updates a step of the world."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(303)
WORLDS, STATE, ACTION, HIDDEN = 512, 64, 16, 512


class Wide(nn.Module):
    def __init__(self, count, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(count, i, o) / i**0.5), nn.Parameter(torch.zeros(count, 1, o))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class Critics(nn.Module):
    def __init__(self, count=5):
        super().__init__()
        self.count = count
        self.net = nn.Sequential(Wide(count, STATE + ACTION, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(), Wide(count, HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(), Wide(count, HIDDEN, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], -1).expand(self.count, -1, -1)).squeeze(-1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(STATE, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2 * ACTION))

    def forward(self, s):
        mean, scale = self.net(s).chunk(2, -1)
        normal = torch.distributions.Normal(mean, scale.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = raw.tanh()
        return action, (normal.log_prob(raw) - 2 * (0.6931 - raw - F.softplus(-2 * raw))).sum(-1)


SIZE = 200_000
buffer = {"s": torch.zeros(SIZE, STATE, device="cuda"), "a": torch.zeros(SIZE, ACTION, device="cuda"), "r": torch.zeros(SIZE, device="cuda"),
          "n": torch.zeros(SIZE, STATE, device="cuda"), "d": torch.zeros(SIZE, dtype=torch.bool, device="cuda")}
actor, critics, target = Actor().cuda(), Critics().cuda(), Critics().cuda()
target.load_state_dict(critics.state_dict())
target.requires_grad_(False)
heat = torch.zeros((), device="cuda", requires_grad=True)
q_opt, a_opt, h_opt = (torch.optim.Adam(p, 3e-4) for p in (critics.parameters(), actor.parameters(), [heat]))
state, place, full = torch.randn(WORLDS, STATE, device="cuda"), 0, 0
matrix = torch.randn(STATE + ACTION, STATE, device="cuda") / 9
for tick in range(24):
    with torch.no_grad():
        action = torch.rand(WORLDS, ACTION, device="cuda") * 2 - 1 if tick < 4 else actor(state)[0]
        following = torch.tanh(torch.cat([state, action], -1) @ matrix)
        reward, done = -following.pow(2).mean(-1), torch.rand(WORLDS, device="cuda") < 0.01
        for key, value in (("s", state), ("a", action), ("r", reward), ("n", following), ("d", done)):
            buffer[key][place:place + WORLDS] = value
        state = torch.where(done[:, None], torch.randn_like(state), following)
        place, full = (place + WORLDS) % (SIZE - WORLDS), min(full + WORLDS, SIZE - WORLDS)
    if tick < 4:
        continue
    for update in range(2):
        index = torch.randint(0, full, (4096,), device="cuda")
        s, a, r, n, d = (buffer[k][index] for k in "sarnd")
        with torch.no_grad():
            na, logp = actor(n)
            pair = torch.randperm(5, device="cuda")[:2]
            goal = r + 0.99 * (~d).float() * (target(n, na)[pair].amin(0) - heat.exp() * logp)
        q_loss = F.mse_loss(critics(s, a), goal.expand(5, -1))
        q_opt.zero_grad()
        q_loss.backward()
        q_opt.step()
        pi, logp = actor(s)
        a_loss = (heat.exp().detach() * logp - critics(s, pi).mean(0)).mean()
        a_opt.zero_grad()
        a_loss.backward()
        a_opt.step()
        h_loss = -(heat * (logp.detach() - ACTION)).mean()
        h_opt.zero_grad()
        h_loss.backward()
        h_opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(critics.parameters()), 0.005)
    print(tick, q_loss.item(), a_loss.item())
