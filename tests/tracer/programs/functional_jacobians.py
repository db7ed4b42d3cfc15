"""Jacobians, Hessians and directional derivatives by torch.func: a sensitivity loss, and gradients of each sample."""
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

torch.manual_seed(75)
net = nn.Sequential(nn.Linear(24, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 12)).cuda()
params = {k: v.detach() for k, v in net.named_parameters()}


def f(p, x):
    return functional_call(net, p, (x,))


def energy(p, x):
    return f(p, x).pow(2).sum()


optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    x, v = torch.randn(1500, 24, device="cuda"), torch.randn(1500, 24, device="cuda")
    live = dict(net.named_parameters())
    y, tangent = jvp(lambda z: f(live, z), (x,), (v,))
    jacobian = vmap(jacrev(f, argnums=1), in_dims=(None, 0))(live, x[:600])
    loss = y.pow(2).mean() + 0.1 * tangent.pow(2).mean() + 0.01 * jacobian.pow(2).sum((1, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
params = {k: v.detach() for k, v in net.named_parameters()}
with torch.no_grad():
    each = vmap(grad(energy), in_dims=(None, 0), randomness="different")(params, torch.randn(400, 24, device="cuda"))
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    clipped = {k: (g * (1 / norms.clamp(min=1)).view(-1, *[1] * (g.dim() - 1))).sum(0) for k, g in each.items()}
    print(norms.mean().item(), len(clipped))
    del each, clipped
    curve = vmap(hessian(energy, argnums=1), in_dims=(None, 0))(params, torch.randn(500, 24, device="cuda"))
    forward = vmap(jacfwd(f, argnums=1), in_dims=(None, 0), chunk_size=128)(params, torch.randn(700, 24, device="cuda"))
    print(tuple(curve.shape), torch.linalg.norm(forward).item())
