"""What torch.compile and CUDA graphs ask of the allocator; check_compiled.py has what each step must ask."""
import torch
from torch.utils.checkpoint import checkpoint

device = "cuda"
x = torch.ones(1024, 1024, device=device)
weight = torch.ones(1024, 1024, device=device, requires_grad=True)


def pointwise(x):
    return ((x + 1) * 2).relu().sin()


def square(x):
    return (x @ weight).relu().square().sum()


fused = torch.compile(pointwise, dynamic=False)
trained = torch.compile(square)
replayed = torch.compile(pointwise, mode="reduce-overhead")
any_size = torch.compile(lambda x: (x * 2).relu(), dynamic=True)


def step():
    torch.cuda.synchronize()


step()
for _ in range(2):  # steps 1 and 2
    out = fused(x)
    del out
    step()
for _ in range(2):  # steps 3 and 4
    trained(x).backward()
    weight.grad = None
    step()
with torch.no_grad():
    for _ in range(4):  # steps 5 to 8
        out = replayed(x)
        del out
        step()
    for rows in (256, 300, 77):  # steps 9 to 11
        out = any_size(x[:rows])
        del out
        step()

graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    kept = pointwise(x)
step()  # 12
graph.replay()
step()  # 13
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = torch.empty(30 << 20, dtype=torch.uint8, device=device)
outside = torch.empty(1 << 20, dtype=torch.uint8, device=device)
del inside, pool
del kept, graph
torch.cuda.empty_cache()
address = torch.cuda.caching_allocator_alloc(5 << 20)
torch.cuda.caching_allocator_delete(address)
step()  # 14


def mixed(x):
    host = torch.where(torch.ones(4096, 64) != 0, 1.0, -1000.0)  # a condition on the host, and numbers
    heads = (x + host.to(x.device, x.dtype)).unsqueeze(0)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1)


twice = torch.compile(lambda x: checkpoint(mixed, x, use_reentrant=False))
half = torch.ones(4, 4096, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
twice(half).float().sum().backward()  # attention draws the same numbers again, of a state on the host
step()  # 15


class Layer(torch.nn.Module):
    """A module with a call of its own, as those of transformers: its guards ask for an empty list of hooks."""

    def __call__(self, x):
        return super().__call__(x)

    def forward(self, x):
        return (x * 2).relu()


layer = torch.compile(Layer())
layer(x)
with torch._dynamo.config.patch(error_on_recompile=True):
    layer(x)
step()  # 16


def broken(x):
    for _ in range(1):  # Dynamo cannot go on within it
        torch._dynamo.graph_break()
        x = x.to(torch.bfloat16).cpu()
    return x


frames = torch._dynamo.utils.counters["frames"]
before = frames["total"]
torch.compile(lambda x: broken(x))(x)
assert frames["total"] - before == 2, dict(frames)  # of the program: what stands for C++ here has none
filters = torch.ones(8, 4, 3, 3, device=device)
convolution = torch.compile(lambda x: torch.nn.functional.conv2d(x, filters).relu())
for rows in (2, 3):
    convolution(torch.ones(rows, 4, 32, 32, device=device))
with torch._dynamo.config.patch(error_on_recompile=True):  # from the second size on it is any
    convolution(torch.ones(5, 4, 32, 32, device=device))
step()  # 17
torch.set_float32_matmul_precision("high")
product = torch.compile(lambda a, b: torch.bmm(a.relu(), b.relu()))
kept = product(torch.ones(48, 602, 602, device=device), torch.ones(48, 602, 64, device=device))
step()  # 18
best, count = torch.compile(lambda x: (x.argmax(-1), (x > 0).sum(-1)))(torch.empty(8, 16, device=device))
best.tolist(), count.tolist()  # of which nothing is known
