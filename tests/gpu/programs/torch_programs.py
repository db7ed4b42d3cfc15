"""tape, products: the documents' programs in PyTorch. Counters are those of its caching allocator, so
they are there in a run without PYTORCH_NO_CUDA_MEMORY_CACHING, which asks for the same."""
import gc
import sys

import torch

import common


def mark(size):
    torch.empty(size, dtype=torch.uint8, device="cuda")


def tape():
    """y = x W + b, the sum of (y - x)^2, and the gradients of W and b."""
    width = 100
    weight = torch.randn(width, width, device="cuda", requires_grad=True)
    bias = torch.zeros(width, device="cuda", requires_grad=True)
    for _ in range(100):
        x = torch.randn(width, width, device="cuda")
        y = x @ weight + bias
        loss = ((y - x) ** 2).sum()
        loss.backward()
        weight.grad = None
        bias.grad = None


def products():
    """Squares of matrices that are let go, and one that stays until the next."""
    for n in (100, 1000, 4000, 100, 333):
        for _ in range(5):
            first = torch.randn(n, n, device="cuda")
            second = torch.randn(n, n, device="cuda")
            result = first @ first
            result = second @ second
            del first, second
            third = torch.randn(n, n, device="cuda")
            result = third @ third
    del result, third


def counts():
    stats = torch.cuda.memory_stats()
    return (stats.get("allocation.all.allocated", 0), stats.get("requested_bytes.all.allocated", 0),
            stats.get("requested_bytes.all.current", 0))


def main():
    program = {"tape": tape, "products": products}[sys.argv[1]]
    program()
    gc.collect()
    torch.cuda.synchronize()
    mark(common.BEGIN_BYTES)
    before = counts()
    program()
    gc.collect()
    torch.cuda.synchronize()
    after = counts()
    mark(common.END_BYTES)
    common.write(allocations=after[0] - before[0], allocated_bytes=after[1] - before[1],
                 live_change_bytes=after[2] - before[2])


main()
