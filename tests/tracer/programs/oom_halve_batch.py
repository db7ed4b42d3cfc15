"""Finds the largest batch that fits below a limit: an out-of-memory error halves it, then training goes on."""
import gc

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(43)
torch.cuda.set_per_process_memory_fraction(4 * 2**30 / torch.cuda.get_device_properties(0).total_memory)
layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
model = nn.Sequential(nn.Embedding(20000, 512), nn.TransformerEncoder(layer, 4), nn.Linear(512, 20000)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)


def step(batch, length):
    ids = torch.randint(0, 20000, (batch, length), device="cuda")
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


batch, done, failures = 256, 0, 0
while done < 10:
    try:
        loss = step(batch, (256, 192)[done % 2])
        done += 1
        print(done, batch, loss)
    except torch.cuda.OutOfMemoryError:
        failures += 1
        optimizer.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()
        batch //= 2
        print("out of memory, now", batch)
print("batch", batch, "failures", failures)
