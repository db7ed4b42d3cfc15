"""PPO: actors in child processes send episodes, the learner holds a buffer on the card and trains in shuffled batches."""
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


def actor(seed, frames, queue):
    g = torch.Generator().manual_seed(seed)
    for _ in range(3):
        queue.put((torch.randint(0, 256, (frames, 4, 84, 84), dtype=torch.uint8, generator=g).numpy(),
                   torch.randn(frames, generator=g).numpy()))


class Policy(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(),
                                  nn.Conv2d(128, 128, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128 * 49, 1024), nn.ReLU())
        self.pi, self.value = nn.Linear(1024, actions), nn.Linear(1024, 1)

    def forward(self, x):
        h = self.body(x.float() / 255)
        return Categorical(logits=self.pi(h)), self.value(h).squeeze(1)


def main():
    torch.manual_seed(44)
    actors, frames = 2, 1024
    context = mp.get_context("spawn")
    queue = context.Queue()
    children = [context.Process(target=actor, args=(i, frames, queue)) for i in range(actors)]
    for c in children:
        c.start()
    policy = Policy().cuda()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2.5e-4, eps=1e-5)
    buffer = torch.zeros(actors, frames, 4, 84, 84, dtype=torch.uint8, device="cuda")
    rewards = torch.zeros(actors, frames, device="cuda")
    for update in range(3):
        for i in range(actors):
            pixels, reward = queue.get()
            buffer[i].copy_(torch.from_numpy(pixels))
            rewards[i] = torch.from_numpy(reward).to("cuda")
        states = buffer.flatten(0, 1)
        with torch.no_grad():
            parts = [policy(s) for s in states.split(512)]
            actions = torch.cat([p.sample() for p, _ in parts])
            old = torch.cat([p.log_prob(a) for (p, _), a in zip(parts, actions.split(512))])
            values = torch.cat([v for _, v in parts]).view(actors, frames)
            advantage, last = torch.zeros_like(rewards), 0.0
            for t in reversed(range(frames - 1)):
                delta = rewards[:, t] + 0.99 * values[:, t + 1] - values[:, t]
                advantage[:, t] = last = delta + 0.99 * 0.95 * last
            returns = (advantage + values).flatten()
            advantage = advantage.flatten()
        for epoch in range(2):
            for index in torch.randperm(len(states), device="cuda").split(512):
                pi, value = policy(states[index])
                a = advantage[index]
                a = (a - a.mean()) / (a.std() + 1e-8)
                ratio = (pi.log_prob(actions[index]) - old[index]).exp()
                loss = -torch.min(ratio * a, ratio.clamp(0.9, 1.1) * a).mean()
                loss = loss + 0.5 * F.mse_loss(value, returns[index]) - 0.01 * pi.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()
        print(update, loss.item())
    for c in children:
        c.join()


if __name__ == "__main__":
    main()
