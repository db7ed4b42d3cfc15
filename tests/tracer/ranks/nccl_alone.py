"""One rank over NCCL: what ProcessGroupNCCL requests, and how much memory NCCL itself takes."""

import json
import sys

import torch
import torch.distributed as dist
from common import start


def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


taken = []


def step(name, function):
    before = used()
    function()
    taken.append((name, used() - before))


rank, world, device = start()
x = torch.ones(1000, device=device)
before = torch.empty(1 << 20, device=device)
step("first all_reduce", lambda: dist.all_reduce(x))
step("all_gather", lambda: dist.all_gather([torch.empty_like(x) for _ in range(world)], x))
gathered = torch.empty(2000 * world, device=device)
work = dist.all_gather_into_tensor(gathered, torch.empty(2000, device=device), async_op=True)
kept = torch.empty(30000, device=device)
work.wait()
del kept
after = torch.empty(40000, device=device)
step("reduce_scatter", lambda: dist.reduce_scatter(x, [torch.empty_like(x) for _ in range(world)]))
step("barrier", lambda: dist.barrier())
step("objects", lambda: dist.all_gather_object([None] * world, {"rank": rank}))
listed = [{"rank": rank}, 7]
step("broadcast objects", lambda: dist.broadcast_object_list(listed, src=0))
step("all_to_all", lambda: dist.all_to_all_single(torch.empty_like(x), x))
groups = []
for i in range(3):
    groups.append(dist.new_group(list(range(world))))
    step(f"group {i}", lambda: dist.all_reduce(x, group=groups[-1]))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 1000).to(device))
for _ in range(2):
    model(x.expand(8, 1000)).sum().backward()
if len(sys.argv) > 1:
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"nccl": list(torch.cuda.nccl.version()), "taken": taken}, out)
print(taken)
dist.destroy_process_group()
