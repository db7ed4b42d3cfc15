"""A network solves a heat equation: second derivatives by autograd, LBFGS with line search."""
import torch
from torch import nn

torch.manual_seed(29)
layers = [nn.Linear(2, 512), nn.Tanh()]
for _ in range(5):
    layers += [nn.Linear(512, 512), nn.Tanh()]
net = nn.Sequential(*layers, nn.Linear(512, 1)).cuda()
inside = torch.rand(20000, 2, device="cuda", requires_grad=True)
edge = torch.rand(4000, 2, device="cuda")
edge[:2000, 0] = 0.0
edge[2000:, 0] = 1.0
start = torch.stack([torch.rand(4000, device="cuda"), torch.zeros(4000, device="cuda")], dim=1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.8, max_iter=6, history_size=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    u = net(inside)
    du = torch.autograd.grad(u, inside, torch.ones_like(u), create_graph=True)[0]
    ux, ut = du[:, :1], du[:, 1:]
    uxx = torch.autograd.grad(ux, inside, torch.ones_like(ux), create_graph=True)[0][:, :1]
    loss = (ut - 0.1 * uxx).square().mean() + net(edge).square().mean()
    loss = loss + (net(start) - torch.sin(torch.pi * start[:, :1])).square().mean()
    loss.backward()
    return loss


for epoch in range(5):
    loss = optimizer.step(closure)
    print(epoch, loss.item())
