"""torch.func: an ensemble by vmap, gradients of single samples with clipping, Jacobian-vector products."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, jvp, stack_module_state, vmap

torch.manual_seed(31)


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 768), nn.GELU(), nn.LayerNorm(768), nn.Linear(768, 768),
                         nn.GELU(), nn.Linear(768, 10)).cuda()


models = [make() for _ in range(12)]
params, buffers = stack_module_state(models)
base = make().to("meta")


def loss_of(p, b, x, y):
    return F.cross_entropy(functional_call(base, (p, b), (x,)), y)


print("ensemble")
velocity = {k: torch.zeros_like(v) for k, v in params.items()}
for step in range(6):
    x, y = torch.randn(1024, 1, 28, 28, device="cuda"), torch.randint(0, 10, (1024,), device="cuda")
    grads, losses = vmap(grad_and_value(loss_of), in_dims=(0, 0, None, None))(params, buffers, x, y)
    with torch.no_grad():
        for k in params:
            velocity[k].mul_(0.9).add_(grads[k])
            params[k] = (params[k] - 0.01 * velocity[k]).detach()
    torch.cuda.synchronize()
    print(step, losses.mean().item())

print("private")
one = make()
names = dict(one.named_parameters())
sample_grad = vmap(grad(lambda p, x, y: F.cross_entropy(functional_call(one, p, (x[None],)), y[None])),
                   in_dims=(None, 0, 0))
for step in range(4):
    x, y = torch.randn(192, 1, 28, 28, device="cuda"), torch.randint(0, 10, (192,), device="cuda")
    weights = {k: v.detach() for k, v in names.items()}
    each = sample_grad(weights, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    scale = (1.0 / norms).clamp(max=1.0)
    with torch.no_grad():
        for k, p in names.items():
            total = torch.einsum("n,n...->...", scale, each[k])
            p.sub_(0.1 * (total + 0.3 * torch.randn_like(p)) / len(x))
    torch.cuda.synchronize()

print("forward mode")
for step in range(3):
    x = torch.randn(4096, 1, 28, 28, device="cuda")
    weights = {k: v.detach() for k, v in names.items()}
    tangents = {k: torch.randn_like(v) for k, v in weights.items()}
    out, change = jvp(lambda p: functional_call(one, p, (x,)), (weights,), (tangents,))
    torch.cuda.synchronize()
    print(out.shape, change.abs().mean().item())
