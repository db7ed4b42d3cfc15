"""tape, products: the documents' programs in CuPy without a pool. Every array goes through a
counting allocator, which is CuPy's own way to the driver with a number beside it.

overhead: cudaMalloc and cudaFree, timed one by one."""
import gc
import statistics
import sys
import time

import cupy

import common


class Counter:
    def __init__(self):
        self.allocations = self.allocated_bytes = 0

    def allocate(self, size):
        if size:
            self.allocations += 1
            self.allocated_bytes += size
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)


def mark(size):
    cupy.empty(size, dtype=cupy.uint8)


def tape():
    """y = x W + b, the sum of (y - x)^2, and the gradients of W and b, written out."""
    width = 100
    weight = cupy.random.standard_normal((width, width), dtype=cupy.float32)
    bias = cupy.zeros(width, dtype=cupy.float32)
    for _ in range(100):
        x = cupy.random.standard_normal((width, width), dtype=cupy.float32)
        y = x @ weight + bias
        difference = y - x
        loss = (difference ** 2).sum()
        of_y = 2 * difference
        of_weight = x.T @ of_y
        of_bias = of_y.sum(axis=0)
    del x, y, difference, loss, of_y, of_weight, of_bias


def products():
    for n in (100, 1000, 4000, 100, 333):
        for _ in range(5):
            first = cupy.random.standard_normal((n, n), dtype=cupy.float32)
            second = cupy.random.standard_normal((n, n), dtype=cupy.float32)
            result = first @ first
            result = second @ second
            del first, second
            third = cupy.random.standard_normal((n, n), dtype=cupy.float32)
            result = third @ third
    del result, third


def overhead():
    runtime = cupy.cuda.runtime
    runtime.free(runtime.malloc(1 << 20))
    alloc_ns, free_ns = [], []
    for _ in range(4000):
        begin = time.perf_counter_ns()
        pointer = runtime.malloc(1 << 20)
        middle = time.perf_counter_ns()
        runtime.free(pointer)
        alloc_ns.append(middle - begin)
        free_ns.append(time.perf_counter_ns() - middle)
    common.write(alloc_ns=statistics.median(alloc_ns), free_ns=statistics.median(free_ns))


def main():
    if sys.argv[1] == "overhead":
        overhead()
        return
    counter = Counter()
    cupy.cuda.set_allocator(counter.allocate)
    cupy.cuda.set_pinned_memory_allocator(None)
    program = {"tape": tape, "products": products}[sys.argv[1]]
    program()
    gc.collect()
    cupy.cuda.Device().synchronize()
    mark(common.BEGIN_BYTES)
    before = (counter.allocations, counter.allocated_bytes)
    program()
    gc.collect()
    cupy.cuda.Device().synchronize()
    after = (counter.allocations, counter.allocated_bytes)
    mark(common.END_BYTES)
    common.write(allocations=after[0] - before[0], allocated_bytes=after[1] - before[1],
                 live_change_bytes=0)


main()
