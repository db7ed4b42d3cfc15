"""Proximal policy optimization on worlds that run on the card: rollouts, advantages, epochs of shuffled minibatches."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(63)
WORLDS, HORIZON = 512, 48


class Worlds:
    def __init__(self):
        self.state = torch.rand(WORLDS, 4, 20, 20, device="cuda")

    def step(self, action):
        shift = action.view(-1, 1, 1, 1).float() / 6
        self.state = torch.roll(self.state, 1, dims=3) * 0.9 + 0.1 * torch.rand_like(self.state) + 0.01 * shift
        done = torch.rand(WORLDS, device="cuda") < 0.02
        self.state[done] = torch.rand(int(done.sum()), 4, 20, 20, device="cuda")
        return self.state, self.state.mean((1, 2, 3)), done


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 36, 512), nn.ReLU())
        self.actor, self.critic = nn.Linear(512, 6), nn.Linear(512, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


agent, worlds = Agent().cuda(), Worlds()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
state = worlds.state
for update in range(3):
    states = torch.zeros(HORIZON, WORLDS, 4, 20, 20, device="cuda")
    actions, logs, rewards, dones, guesses = (torch.zeros(HORIZON, WORLDS, device="cuda") for _ in range(5))
    for t in range(HORIZON):
        states[t] = state
        with torch.no_grad():
            choice, guess = agent(state)
            action = choice.sample()
        actions[t], logs[t], guesses[t] = action, choice.log_prob(action), guess
        state, rewards[t], done = worlds.step(action)
        dones[t] = done.float()
    with torch.no_grad():
        last = agent(state)[1]
        advantages, running = torch.zeros_like(rewards), 0
        for t in reversed(range(HORIZON)):
            following = last if t == HORIZON - 1 else guesses[t + 1]
            delta = rewards[t] + 0.99 * following * (1 - dones[t]) - guesses[t]
            advantages[t] = running = delta + 0.99 * 0.95 * (1 - dones[t]) * running
        returns = advantages + guesses
    flat = [v.flatten(0, 1) for v in (states, actions, logs, advantages, returns)]
    for epoch in range(2):
        for pick in torch.randperm(HORIZON * WORLDS, device="cuda").split(4096):
            s, a, old, adv, ret = (v[pick] for v in flat)
            choice, guess = agent(s)
            ratio = (choice.log_prob(a) - old).exp()
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() + 0.5 * (guess - ret).pow(2).mean() - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print(update, loss.item(), rewards.mean().item())
