"""CUDA graphs: the whole step of a training loop captured with its optimizer, and a module made into graphed callables."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(78)


def tower():
    return nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Dropout(0.1), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()


model = tower()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
image, target = torch.randn(2048, 1024, device="cuda"), torch.randn(2048, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(model(image), target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = F.mse_loss(model(image), target)
    loss.backward()
    optimizer.step()
for step in range(10):
    image.copy_(torch.randn(2048, 1024))
    target.copy_(torch.randn(2048, 512))
    graph.replay()
print(loss.item())

first, second = tower(), nn.Sequential(nn.Linear(512, 1024), nn.SiLU(), nn.Linear(1024, 10)).cuda()
x, h = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 512, device="cuda", requires_grad=True)
first, second = torch.cuda.make_graphed_callables((first, second), ((x,), (h,)))
both = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1, momentum=0.9)
for step in range(5):
    data, label = torch.randn(1024, 1024).cuda(), torch.randint(0, 10, (1024,)).cuda()
    middle = first(data)
    if step % 2:
        middle = middle * 2
    out = F.cross_entropy(second(middle), label)
    both.zero_grad(set_to_none=True)
    out.backward()
    both.step()
    print(step, out.item())
