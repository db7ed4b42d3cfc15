"""FSDP1 by blocks, original parameters, bfloat16."""

import torch
from common import Block, Llama, lengths, loss_of, start
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

rank, world, device = start()
precision = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
model = FullyShardedDataParallel(
    Llama(layers=8),
    auto_wrap_policy=ModuleWrapPolicy({Block}),
    mixed_precision=precision,
    device_id=device,
    use_orig_params=True,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths(5):
    tokens = torch.randint(0, 32000, (4, length), device=device)
    loss_of(model(tokens), tokens).backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
