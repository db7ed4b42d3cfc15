"""A world model as Dreamer's: convolutions read frames, a recurrent state with categories is filtered, frames and rewards are decoded, then an actor and a critic learn in imagined paths."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1215)
H, C, K = 512, 24, 24


def mlp(i, o, n=2):
    return nn.Sequential(*[m for k in range(n) for m in (nn.Linear(i if k == 0 else 400, 400), nn.LayerNorm(400), nn.SiLU())], nn.Linear(400, o))


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.SiLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.SiLU(), nn.Conv2d(64, 128, 4, 2, 1), nn.SiLU(), nn.Conv2d(128, 256, 4, 2, 1), nn.SiLU(), nn.Flatten())
        self.inp, self.cell = nn.Linear(C * K + 6, 400), nn.GRUCell(400, H)
        self.prior, self.post = mlp(H, C * K, 1), mlp(H + 4096, C * K, 1)
        self.spread = nn.Linear(H + C * K, 4096)
        self.draw = nn.Sequential(nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1))
        self.reward = mlp(H + C * K, 1)

    def sample(self, logits):
        p = logits.view(-1, C, K).softmax(-1) * 0.99 + 0.01 / K
        hard = F.one_hot(torch.distributions.Categorical(probs=p).sample(), K).float()
        return (hard + p - p.detach()).flatten(1), p

    def step(self, h, z, a):
        return self.cell(F.silu(self.inp(torch.cat([z, a], 1))), h)


world, actor, critic = World().cuda(), mlp(H + C * K, 6).cuda(), mlp(H + C * K, 1).cuda()
optimizers = [torch.optim.Adam(world.parameters(), 1e-4, eps=1e-8), torch.optim.Adam(actor.parameters(), 3e-5), torch.optim.Adam(critic.parameters(), 3e-5)]


def update(optimizer, module, loss, keep=False):
    optimizer.zero_grad()
    loss.backward(retain_graph=keep)
    nn.utils.clip_grad_norm_(module.parameters(), 100.0)
    optimizer.step()


for step in range(6):
    B, T = 16, 32
    frames = torch.randint(0, 256, (B, T, 3, 64, 64), dtype=torch.uint8).cuda().float() / 255 - 0.5
    actions = F.one_hot(torch.randint(0, 6, (B, T)), 6).float().cuda()
    rewards = torch.randn(B, T).cuda()
    seen = world.read(frames.flatten(0, 1)).view(B, T, -1)
    h, z = torch.zeros(B, H, device="cuda"), torch.zeros(B, C * K, device="cuda")
    states, kl = [], 0.0
    for t in range(T):
        h = world.step(h, z, actions[:, t])
        _, prior = world.sample(world.prior(h))
        z, post = world.sample(world.post(torch.cat([h, seen[:, t]], 1)))
        kl = kl + (post * (post.log() - prior.log())).sum((1, 2)).mean()
        states.append(torch.cat([h, z], 1))
    s = torch.stack(states, 1)
    picture = world.draw(world.spread(s.flatten(0, 1)).view(-1, 256, 4, 4)).view_as(frames)
    loss = ((picture - frames) ** 2).sum((2, 3, 4)).mean() + F.mse_loss(world.reward(s).squeeze(2), rewards) + kl / T
    update(optimizers[0], world, loss)
    s = s.detach().flatten(0, 1)
    h, z, path, logs = s[:, :H], s[:, H:], [s], []
    for t in range(12):
        policy = torch.distributions.Categorical(logits=actor(path[-1].detach()))
        a = policy.sample()
        logs.append(policy.log_prob(a) + 1e-3 * policy.entropy())
        with torch.no_grad():
            h = world.step(h, z, F.one_hot(a, 6).float())
            z, _ = world.sample(world.prior(h))
        path.append(torch.cat([h, z], 1))
    path = torch.stack(path)
    with torch.no_grad():
        value, gain = critic(path).squeeze(2), world.reward(path).squeeze(2)
        target, back = value[-1], []
        for t in reversed(range(12)):
            target = gain[t + 1] + 0.97 * (0.05 * value[t + 1] + 0.95 * target)
            back.append(target)
        back = torch.stack(back[::-1])
    update(optimizers[1], actor, -(torch.stack(logs) * (back - value[:-1])).mean())
    update(optimizers[2], critic, F.mse_loss(critic(path[:-1]).squeeze(2), back))
    print(step, loss.item())
