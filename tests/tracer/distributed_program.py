"""A program of rank 1 of 4 for check_distributed.py. Each part ends with an empty_cache, a line `c` in the trace."""

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
part_ends = torch.cuda.empty_cache


def linears(count, size=1024):
    return torch.nn.Sequential(*[torch.nn.Linear(size, size, bias=False) for _ in range(count)])


def collectives():
    x = torch.ones(1000, device="cuda")
    dist.all_gather([torch.empty_like(x) for _ in range(world)], x)
    gathered = torch.empty(8000, device="cuda")
    work = dist.all_gather_into_tensor(gathered, torch.empty(2000, device="cuda"), async_op=True)
    torch.empty(30000, device="cuda")
    work.wait()
    torch.empty(40000, device="cuda")
    dist.barrier()
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    total = torch.tensor([2.0, 5.0], device="cuda")
    dist.all_reduce(total)
    counts = torch.tensor([3, 4, 5, 6], device="cuda")
    mine = torch.empty_like(counts)
    dist.all_to_all_single(mine, counts)
    listed = [{"from": rank}]
    dist.broadcast_object_list(listed, src=1)
    cpu = torch.ones(2)
    dist.all_reduce(cpu, group=dist.new_group(backend="gloo"))
    print(objects, total.tolist(), mine.tolist(), listed, cpu.tolist(), dist.get_backend(), world)


def data_parallel():
    model = torch.nn.parallel.DistributedDataParallel(linears(10).cuda(), device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def fully_sharded():
    with torch.device("meta"):
        model = linears(2, 2048)
    for layer in model:
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    fully_shard(model)
    model.to_empty(device="cuda")
    model(torch.randn(8, 2048, device="cuda")).float().sum().backward()


def tensor_parallel():
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "tensor"))
    model = linears(2).cuda()
    parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    model(torch.randn(16, 1024, device="cuda")).sum().backward()
    norm = parallelize_module(torch.nn.RMSNorm(1024).cuda(), mesh["tensor"], SequenceParallel())
    norm(torch.randn(2, 16, 1024, device="cuda"))


def pipeline():
    stage = PipelineStage(linears(2).cuda(), rank, world, torch.device("cuda", torch.cuda.current_device()))
    Schedule1F1B(stage, 4, loss_fn=lambda out, target: (out - target).sum()).step()


for part in (collectives, data_parallel, fully_sharded, tensor_parallel, pipeline):
    part()
    part_ends()
dist.destroy_process_group()
