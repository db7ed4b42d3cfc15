"""A differential equation as a network: Runge-Kutta steps, gradients by the adjoint in an autograd.Function that solves backwards, a latent model of irregular series with a GRU encoder, and a checkpointed variant."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(308)


def rk4(f, y, t0, t1, steps):
    h = (t1 - t0) / steps
    for i in range(steps):
        t = t0 + i * h
        k1 = f(t, y)
        k2 = f(t + h / 2, tuple(a + h / 2 * b for a, b in zip(y, k1)))
        k3 = f(t + h / 2, tuple(a + h / 2 * b for a, b in zip(y, k2)))
        k4 = f(t + h, tuple(a + h * b for a, b in zip(y, k3)))
        y = tuple(a + h / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4))
    return y


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, net, y, t0, t1, steps, *parameters):
        ctx.net, ctx.span = net, (t0, t1, steps)
        with torch.no_grad():
            out, = rk4(lambda t, v: (net(t, v[0]),), (y,), t0, t1, steps)
        ctx.save_for_backward(out, *parameters)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, *parameters = ctx.saved_tensors
        t0, t1, steps = ctx.span

        def augmented(t, v):
            y, a = v[0].detach().requires_grad_(True), v[1]
            with torch.enable_grad():
                f = ctx.net(t, y)
            gy, *gp = torch.autograd.grad(f, (y, *parameters), -a)
            return (f.detach(), gy, *gp)
        with torch.no_grad():
            _, a, *gp = rk4(augmented, (out, grad, *[torch.zeros_like(p) for p in parameters]), t1, t0, steps)
        return (None, a, None, None, None, *gp)


class Dynamics(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width + 1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, width))

    def forward(self, t, y):
        return self.net(torch.cat([y, torch.full_like(y[..., :1], t)], -1))


class Latent(nn.Module):
    def __init__(self, inputs=48, width=128):
        super().__init__()
        self.encoder, self.start = nn.GRU(inputs, 256, batch_first=True), nn.Linear(256, 2 * width)
        self.dynamics, self.read = Dynamics(width, 1024), nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, inputs))

    def forward(self, x, times, mode):
        mean, log = self.start(self.encoder(x.flip(1))[1][0]).chunk(2, -1)
        y = mean + torch.randn_like(mean) * (0.5 * log).exp()
        path = []
        for a, b in zip([0.0] + times[:-1], times):
            if mode == "adjoint":
                y = Adjoint.apply(self.dynamics, y, a, b, 2, *self.dynamics.parameters())
            else:
                y = checkpoint(lambda v, a=a, b=b: rk4(lambda t, u: (self.dynamics(t, u[0]),), (v,), a, b, 2)[0], y, use_reentrant=False)
            path.append(y)
        return self.read(torch.stack(path, 1)), -0.5 * (1 + log - mean.pow(2) - log.exp()).sum(-1).mean()


model = Latent().cuda()
optimizer = torch.optim.Adamax(model.parameters(), 2e-3)
for step in range(6):
    times = [0.1 * (i + 1) for i in range(8 if step % 2 else 10)]
    x = torch.randn(4096, len(times), 48, device="cuda")
    y, kl = model(x, times, "adjoint" if step < 3 else "checkpoint")
    loss = F.mse_loss(y, x) + 0.01 * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
