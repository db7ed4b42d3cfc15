"""DDP in float32 weights and bfloat16 autocast; two micro-batches a step, the first without reduction."""

import torch
from common import Llama, lengths, loss_of, start
from torch.nn.parallel import DistributedDataParallel

rank, world, device = start()
model = DistributedDataParallel(Llama().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths(5):
    for micro in range(2):
        tokens = torch.randint(0, 32000, (4, length), device=device)
        with torch.autocast("cuda", torch.bfloat16):
            if micro == 0:
                with model.no_sync():
                    loss = loss_of(model(tokens), tokens)
                    loss.backward()
            else:
                loss = loss_of(model(tokens), tokens)
                loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
