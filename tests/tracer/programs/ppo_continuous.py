"""PPO for continuous actions: worlds on the host, rollouts kept on the card, generalized advantages, many epochs of minibatches, observations normalized, clipped values."""
import torch
from torch import nn

torch.manual_seed(915)
WORLDS, LENGTH, OBS, ACT = 256, 64, 48, 12


def mlp(out, last):
    net = nn.Sequential(nn.Linear(OBS, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, out))
    nn.init.orthogonal_(net[-1].weight, last)
    return net


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic, self.actor, self.spread = mlp(1, 1.0), mlp(ACT, 0.01), nn.Parameter(torch.zeros(1, ACT))

    def act(self, x, action=None):
        d = torch.distributions.Normal(self.actor(x), self.spread.exp().expand(len(x), -1))
        action = d.sample() if action is None else action
        return action, d.log_prob(action).sum(1), d.entropy().sum(1), self.critic(x).squeeze(-1)


agent = Agent().cuda()
optimizer = torch.optim.Adam(agent.parameters(), 3e-4, eps=1e-5)
keep = {k: torch.zeros(LENGTH, WORLDS, *s, device="cuda") for k, s in {"o": (OBS,), "a": (ACT,), "l": (), "r": (), "d": (), "v": ()}.items()}
mean, square, count = torch.zeros(OBS, device="cuda"), torch.ones(OBS, device="cuda"), 1e-4
seen = torch.randn(WORLDS, OBS)
for iteration in range(3):
    for t in range(LENGTH):
        x = seen.cuda()
        mean, square, count = (mean * count + x.sum(0)) / (count + WORLDS), (square * count + x.pow(2).sum(0)) / (count + WORLDS), count + WORLDS
        x = ((x - mean) / (square - mean**2).clamp(min=1e-8).sqrt()).clamp(-10, 10)
        with torch.no_grad():
            action, logp, _, value = agent.act(x)
        keep["o"][t], keep["a"][t], keep["l"][t], keep["v"][t] = x, action, logp, value
        seen = torch.randn(WORLDS, OBS) + 0.1 * action.cpu().mean(1, keepdim=True)
        keep["r"][t], keep["d"][t] = torch.rand(WORLDS).cuda(), (torch.rand(WORLDS) < 0.01).float().cuda()
    with torch.no_grad():
        last, gain = agent.critic(x).squeeze(-1), torch.zeros(WORLDS, device="cuda")
        advantage = torch.zeros_like(keep["r"])
        for t in reversed(range(LENGTH)):
            after = last if t == LENGTH - 1 else keep["v"][t + 1]
            delta = keep["r"][t] + 0.99 * after * (1 - keep["d"][t]) - keep["v"][t]
            gain = delta + 0.99 * 0.95 * (1 - keep["d"][t]) * gain
            advantage[t] = gain
        returns = advantage + keep["v"]
    flat = {k: v.flatten(0, 1) for k, v in keep.items()}
    advantage, returns = advantage.flatten(), returns.flatten()
    for epoch in range(3):
        for index in torch.randperm(WORLDS * LENGTH, device="cuda").split(4096):
            _, logp, entropy, value = agent.act(flat["o"][index], flat["a"][index])
            ratio, a = (logp - flat["l"][index]).exp(), advantage[index]
            a = (a - a.mean()) / (a.std() + 1e-8)
            policy = torch.max(-a * ratio, -a * ratio.clamp(0.8, 1.2)).mean()
            clipped = flat["v"][index] + (value - flat["v"][index]).clamp(-0.2, 0.2)
            loss = policy + 0.5 * torch.max((value - returns[index]) ** 2, (clipped - returns[index]) ** 2).mean() * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print(iteration, loss.item())
