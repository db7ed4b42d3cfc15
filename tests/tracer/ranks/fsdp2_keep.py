"""FSDP2 that keeps parameters gathered after forward, with checkpointed blocks and two micro-batches a step."""

import torch
from common import Llama, lengths, loss_of, start
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import fully_shard

rank, world, device = start()
model = Llama(layers=8).to(device)
for i, layer in enumerate(model.layers):
    model.layers[i] = checkpoint_wrapper(layer)
    fully_shard(model.layers[i], reshard_after_forward=False)
fully_shard(model, reshard_after_forward=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths(5):
    for micro in range(2):
        model.set_requires_gradient_sync(micro == 1)
        tokens = torch.randint(0, 32000, (2, length), device=device)
        loss_of(model(tokens), tokens).backward()
    optimizer.step()
    optimizer.zero_grad()
