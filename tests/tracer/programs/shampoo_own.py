"""An optimizer of its own: Shampoo with inverse roots by eigenvalues every second step, and Lion for vectors."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(72)


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, every=2):
        super().__init__(params, {"lr": lr, "every": every})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if p.ndim < 2:
                    m = state.setdefault("m", torch.zeros_like(p))
                    p.add_(torch.sign(0.9 * m + 0.1 * g), alpha=-group["lr"] * 0.1)
                    m.lerp_(g, 0.01)
                    continue
                flat = g.reshape(g.shape[0], -1)
                if not state:
                    state["count"] = 0
                    state["sides"] = [1e-4 * torch.eye(n, device=p.device) for n in flat.shape]
                    state["roots"] = [torch.eye(n, device=p.device) for n in flat.shape]
                    state["momentum"] = torch.zeros_like(flat)
                state["sides"][0].addmm_(flat, flat.t())
                state["sides"][1].addmm_(flat.t(), flat)
                if state["count"] % group["every"] == 0:
                    for i, side in enumerate(state["sides"]):
                        values, vectors = torch.linalg.eigh(side)
                        state["roots"][i] = vectors @ torch.diag(values.clamp(min=1e-6) ** -0.25) @ vectors.t()
                state["count"] += 1
                step = state["roots"][0] @ flat @ state["roots"][1]
                state["momentum"].mul_(0.9).add_(step)
                p.add_(state["momentum"].view_as(p), alpha=-group["lr"])


model = nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                      nn.Flatten(), nn.Linear(2048, 1024), nn.Tanh(), nn.Linear(1024, 768), nn.Tanh(), nn.Linear(768, 100)).cuda()
optimizer = Shampoo(model.parameters())
for step in range(8):
    image, label = torch.rand(256, 3, 48, 48, device="cuda"), torch.randint(0, 100, (256,), device="cuda")
    loss = F.cross_entropy(model(image), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
