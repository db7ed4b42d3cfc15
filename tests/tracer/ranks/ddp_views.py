"""DDP with gradients as views of its buckets, smaller buckets and a hook that reduces in bfloat16."""

import torch
from common import Llama, lengths, loss_of, start
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

rank, world, device = start()
model = Llama(layers=6).to(device)
model = DistributedDataParallel(model, device_ids=[device.index], gradient_as_bucket_view=True, bucket_cap_mb=40)
model.register_comm_hook(None, bf16_compress_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for length in lengths(5):
    tokens = torch.randint(0, 32000, (4, length), device=device)
    loss_of(model(tokens), tokens).backward()
    optimizer.step()
    optimizer.zero_grad()
