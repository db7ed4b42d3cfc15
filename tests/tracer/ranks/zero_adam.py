"""DDP with an optimizer whose states are spread over the ranks (ZeroRedundancyOptimizer)."""

import torch
from common import Llama, lengths, loss_of, start
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

rank, world, device = start()
model = DistributedDataParallel(Llama(layers=6).to(device), device_ids=[device.index], static_graph=True)
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-4)
for length in lengths(5):
    tokens = torch.randint(0, 32000, (4, length), device=device)
    loss_of(model(tokens), tokens).backward()
    optimizer.step()
    optimizer.zero_grad()
