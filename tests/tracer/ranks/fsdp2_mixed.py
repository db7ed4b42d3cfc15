"""FSDP2 from device meta, bfloat16 parameters, float32 reduction, clipping by norm."""

import torch
from common import Llama, lengths, loss_of, start
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

rank, world, device = start()
with torch.device("meta"):
    model = Llama(layers=10)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.layers:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
model.to_empty(device=device)
for parameter in model.parameters():
    torch.nn.init.uniform_(parameter, -0.02, 0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for length in lengths(6):
    tokens = torch.randint(0, 32000, (4, length), device=device)
    loss_of(model(tokens), tokens).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
