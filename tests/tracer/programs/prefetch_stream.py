"""Batches are copied and normalized on a side stream while the model works; record_stream tells the allocator."""
import random

import torch
from torch import nn


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        try:
            x, y = next(self.batches)
        except StopIteration:
            self.next = None
            return
        with torch.cuda.stream(self.stream):
            x, y = x.pin_memory().cuda(non_blocking=True), y.pin_memory().cuda(non_blocking=True)
            x = x.float().sub_(0.5).div_(0.25)
            self.next = x, y

    def get(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.next
        if batch is not None:
            for t in batch:
                t.record_stream(torch.cuda.current_stream())
            self.preload()
        return batch


def host(count):
    for _ in range(count):
        n = random.choice([1024, 2048, 3072])
        yield torch.rand(n, 8192, dtype=torch.float16), torch.randint(0, 1000, (n,))


random.seed(18)
torch.manual_seed(18)
model = nn.Sequential(nn.Linear(8192, 4096), *[nn.Sequential(nn.LayerNorm(4096), nn.Linear(4096, 4096), nn.GELU())
                                               for _ in range(10)], nn.Linear(4096, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
source = Prefetcher(host(12))
batch = source.get()
while batch is not None:
    x, y = batch
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(len(y), loss.item())
    batch = source.get()
