"""A captured training step, make_graphed_callables, a MemPool, and memory without a tensor."""
import torch
import torch.nn as nn

m = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
o = torch.optim.SGD(m.parameters(), lr=0.1)
x = torch.randn(256, 1024, device="cuda")
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3):
        o.zero_grad(set_to_none=True)
        loss = m(x).square().mean()
        loss.backward()
        o.step()
torch.cuda.current_stream().wait_stream(s)
g = torch.cuda.CUDAGraph()
o.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    loss = m(x).square().mean()
    loss.backward()
    o.step()
for _ in range(4):
    x.copy_(torch.randn(256, 1024, device="cuda"))
    g.replay()
m2 = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
gm = torch.cuda.make_graphed_callables(m2, (torch.randn(64, 1024, device="cuda", requires_grad=True),))
for _ in range(3):
    y = gm(torch.randn(64, 1024, device="cuda", requires_grad=True))
    y.sum().backward()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    z = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
    z2 = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
del z
del z2
del pool
del loss
del g
torch.cuda.empty_cache()
a = torch.cuda.caching_allocator_alloc(5 << 20)
torch.cuda.caching_allocator_delete(a)
