"""Graph breaks, a compiled optimizer, a compiled function of another backend, and one in inference mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
m = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(4)).cuda()


@torch.compile
def f(x):
    x = F.gelu(m[0](x))
    torch._dynamo.graph_break()
    x = F.gelu(m[1](x)) + 1
    y = x.sum().item()
    x = x * 2 if y != 0 else x * 3
    print("in break")
    return m[3](F.relu(m[2](x))).sum()


optimizer = torch.optim.Adam([p for layer in m for p in layer.parameters()])


@torch.compile(fullgraph=False)
def step():
    optimizer.step()


for _ in range(4):
    loss = f(torch.randn(256, 1024, device="cuda"))
    loss.backward()
    step()
    optimizer.zero_grad()


@torch.compile(backend="eager")
def g(x):
    return x.relu() + 1


g(torch.randn(100, 100, device="cuda"))
with torch.inference_mode():
    h = torch.compile(lambda x: (x @ x).softmax(-1).topk(4))
    for _ in range(3):
        h(torch.randn(512, 512, device="cuda"))
