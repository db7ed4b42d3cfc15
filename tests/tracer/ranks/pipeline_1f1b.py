"""A stage of a pipeline with the schedule 1F1B and eight micro-batches; shapes are given."""

import torch
import torch.nn as nn
from common import Block, start
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

rank, world, device = start()
stage = nn.Sequential(*[Block(1024, 16, 2816) for _ in range(4)]).to(device)
shape = torch.empty(2, 512, 1024, device="meta")
stage = PipelineStage(stage, rank, world, device, input_args=(shape,), output_args=(shape,))
schedule = Schedule1F1B(stage, 8, loss_fn=lambda out, target: (out - target).pow(2).mean())
optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-4)
for _ in range(5):
    batch = torch.randn(16, 512, 1024, device=device)
    if rank == 0:
        schedule.step(batch)
    elif rank == world - 1:
        schedule.step(target=batch)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
