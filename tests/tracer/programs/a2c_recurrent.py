"""Advantage actor-critic with memory: pictures through convolutions and a GRU cell, many worlds at once on the host, losses over unrolled steps, RMSprop, entropy."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(817)


class Agent(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.eye = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.memory, self.policy, self.value = nn.GRUCell(512, 512), nn.Linear(512, actions), nn.Linear(512, 1)

    def forward(self, x, h):
        h = self.memory(self.eye(x), h)
        return self.policy(h), self.value(h).squeeze(-1), h


WORLDS, STEPS = 64, 16
agent = Agent().cuda()
optimizer = torch.optim.RMSprop(agent.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
state = torch.zeros(WORLDS, 512, device="cuda")
seen = torch.zeros(WORLDS, 4, 84, 84)
for update in range(8):
    logs, values, rewards, alive, entropy = [], [], [], [], 0.0
    state = state.detach()
    for step in range(STEPS):
        logits, value, state = agent(seen.cuda() / 255.0, state)
        spread = torch.distributions.Categorical(logits=logits)
        action = spread.sample()
        logs.append(spread.log_prob(action))
        values.append(value)
        entropy = entropy + spread.entropy().mean()
        seen = torch.cat([seen[:, 1:], torch.randint(0, 256, (WORLDS, 1, 84, 84)).float()], 1)
        rewards.append(torch.rand(WORLDS).cuda())
        alive.append((torch.rand(WORLDS) > 0.02).float().cuda())
        state = state * alive[-1][:, None]
    with torch.no_grad():
        _, back, _ = agent(seen.cuda() / 255.0, state)
    returns = []
    for r, a in zip(reversed(rewards), reversed(alive)):
        back = r + 0.99 * a * back
        returns.insert(0, back)
    returns, values, logs = torch.stack(returns), torch.stack(values), torch.stack(logs)
    advantage = returns - values
    loss = -(logs * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean() - 0.01 * entropy / STEPS
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    print(update, loss.item())
