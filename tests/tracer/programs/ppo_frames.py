"""Proximal policy optimization on frames: many worlds at once, frames kept as bytes on the card, advantages backwards in time, epochs of shuffled minibatches, orthogonal weights."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(1117)
WORLDS, STEPS, ACTIONS = 64, 48, 9


def layer(m, gain=2 ** 0.5):
    nn.init.orthogonal_(m.weight, gain)
    nn.init.zeros_(m.bias)
    return m


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(layer(nn.Conv2d(4, 32, 8, 4)), nn.ReLU(), layer(nn.Conv2d(32, 64, 4, 2)), nn.ReLU(), layer(nn.Conv2d(64, 64, 3)), nn.ReLU(), nn.Flatten(), layer(nn.Linear(64 * 49, 512)), nn.ReLU())
        self.actor, self.critic = layer(nn.Linear(512, ACTIONS), 0.01), layer(nn.Linear(512, 1), 1.0)

    def forward(self, frames):
        h = self.body(frames.float() / 255.0)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


agent = Agent().cuda()
optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4, eps=1e-5)
frames = torch.zeros(STEPS, WORLDS, 4, 84, 84, dtype=torch.uint8, device="cuda")
actions, logs, rewards, ends, values = (torch.zeros(STEPS, WORLDS, device="cuda") for _ in range(5))
now, ended = torch.randint(0, 256, (WORLDS, 4, 84, 84), dtype=torch.uint8).cuda(), torch.zeros(WORLDS, device="cuda")
for update in range(3):
    for t in range(STEPS):
        frames[t], ends[t] = now, ended
        with torch.no_grad():
            policy, value = agent(now)
            action = policy.sample()
        actions[t], logs[t], values[t] = action, policy.log_prob(action), value
        rewards[t] = torch.randn(WORLDS).cuda()
        now = torch.randint(0, 256, (WORLDS, 4, 84, 84), dtype=torch.uint8).cuda()
        ended = (torch.rand(WORLDS) < 0.02).float().cuda()
    with torch.no_grad():
        last, advantages, carried = agent(now)[1], torch.zeros_like(rewards), 0
        for t in reversed(range(STEPS)):
            going, after = (1 - ended, last) if t == STEPS - 1 else (1 - ends[t + 1], values[t + 1])
            carried = rewards[t] + 0.99 * after * going - values[t] + 0.99 * 0.95 * going * carried
            advantages[t] = carried
        returns = advantages + values
    flat = [v.flatten(0, 1) for v in (frames, actions, logs, advantages, returns, values)]
    for epoch in range(3):
        for rows in torch.randperm(STEPS * WORLDS, device="cuda").split(768):
            f, a, l, adv, ret, old = (v[rows] for v in flat)
            policy, value = agent(f)
            ratio = (policy.log_prob(a) - l).exp()
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            gain = -torch.min(adv * ratio, adv * ratio.clamp(0.9, 1.1)).mean()
            near = old + (value - old).clamp(-0.1, 0.1)
            loss = gain + 0.25 * torch.max((value - ret) ** 2, (near - ret) ** 2).mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print(update, loss.item())
