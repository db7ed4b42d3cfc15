"""Tensor parallelism of two with sequence and loss parallelism; FSDP2 over the other ranks, if there are any."""

import torch
import torch.nn.functional as F
from common import Llama, lengths, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

rank, world, device = start()
mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("data", "tensor"))
model = Llama(layers=6).to(device)
split, whole = Shard(1), Replicate()
plan = {
    "embed": RowwiseParallel(input_layouts=whole, output_layouts=split),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=split, output_layouts=Shard(-1), use_local_output=False),
}
parallelize_module(model, mesh["tensor"], plan)
for layer in model.layers:
    plan = {
        "attention_norm": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=(split,), desired_input_layouts=(whole,)),
        **{f"attention.{n}": ColwiseParallel() for n in "qkv"},
        "attention.o": RowwiseParallel(output_layouts=split),
        "feed_norm": SequenceParallel(),
        "feed": PrepareModuleInput(input_layouts=(split,), desired_input_layouts=(whole,)),
        "feed.gate": ColwiseParallel(),
        "feed.up": ColwiseParallel(),
        "feed.down": RowwiseParallel(output_layouts=split),
    }
    parallelize_module(layer, mesh["tensor"], plan)
    if world > 2:
        fully_shard(layer, mesh=mesh["data"])
if world > 2:
    fully_shard(model, mesh=mesh["data"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths(5):
    tokens = torch.randint(0, 32000, (4, length), device=device)
    with loss_parallel():
        logits = model(tokens)
        F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
