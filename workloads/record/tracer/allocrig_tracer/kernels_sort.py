"""Sorting, selection, scans, unique and sampling.

Source: PyTorch 2.11, aten/src/ATen/native/cuda/Sort.cpp and Sort.cu (up to 4,096 elements of a
dimension are sorted in place, more by CUB), TensorTopK.cu and TensorTopK.cpp (several blocks for a
slice), Unique.cu, ScanKernels.cpp, Randperm.cu, SummaryOps.cu, aten/src/ATen/native/Distributions.
"""
import math

from . import kernels_cub as cub
from .kernels_reduce import plain_strides, reduce
from .kernels_shape import (Steps, argument, bytes_of, ceil_div, contiguous, dense, dtype_of,
                            item_bytes, numel, strides_of, wrap)

SMALL_SORT = 4096
LONG_SLICE = 1000000  # slices of this length are sorted one after another


def sort_steps(steps, tensor, dim, outputs):
    """sort_cuda_kernel after `outputs` put the values and indices in place."""
    outputs(steps)
    count, item = numel(tensor), item_bytes(tensor)
    if not tensor.shape or not count:
        return
    dim = wrap(dim, len(tensor.shape))
    size = int(tensor.shape[dim])
    if size <= SMALL_SORT:
        steps.spend(size * 8)
        return
    made = []
    if not (dense(tensor) and strides_of(tensor)[dim] == 1):
        made = [steps.take(count * item), steps.take(count * item), steps.take(count * 8)]
    stable_sort(steps, count, size, item)
    steps.give(*reversed(made))


def stable_sort(steps, count, size, item):
    slices = count // size
    if slices > 1 and size >= LONG_SLICE:
        made = steps.take(size * 8)
        for _ in range(slices):
            steps.give(steps.take(cub.radix(size, item, 8)))
        steps.give(made)
    elif slices == 1:
        steps.spend(count * 8, cub.radix(count, item, 8))
    elif slices >= 128:
        steps.spend(count * 8, cub.segmented_radix(count, item, 8))
    else:
        made = [steps.take(count * 8), steps.take(count * 8)]
        steps.spend(count * item, cub.radix(count, item, 8))
        steps.spend(cub.radix(count, 8, 0, cub.bits_of(slices)))
        steps.give(*reversed(made))


def sort(place_dim):
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        dim = argument(args, kwargs, place_dim, "dim", -1)
        sort_steps(steps, args[0], dim, lambda s: s.out(0).out(1))
        return steps
    return rule


def several_blocks(slices, size):
    """should_use_multiblock of TensorTopK.cu."""
    for most, least in ((20, 20000), (40, 10000), (80, 8000), (199, 5000), (799, 3000), (4000, 800)):
        if slices <= most:
            return size >= least
    return size >= 400


def topk_buffers(steps, slices, size, item, ctx):
    """mbtopk: the k-th values, the counts of digits of each block, and their sums."""
    threads = ctx.sms * min(65536 // (40 * 256), 16) * 256
    each = max(4, min(64, ceil_div(slices * size, threads)))
    blocks = ceil_div(size, each * 256)
    made = [steps.take(slices * item), steps.take(slices * 8),
            steps.take(slices * 2 * max(4, item)), steps.take(slices * blocks * 256 * 2),
            steps.take(slices * 256 * 4), steps.take(slices * blocks * 4),
            steps.take(slices * blocks * 4)]
    space = cub.storage(512, 512)
    steps.give(steps.take(space)).give(steps.take(space))
    steps.give(*reversed(made))


def topk(args, kwargs, outs, ctx):
    tensor, k = args[0], int(args[1])
    dim = argument(args, kwargs, 2, "dim", -1)
    ordered = argument(args, kwargs, 4, "sorted", True)
    steps = Steps().out(0).out(1)
    if not tensor.shape or not numel(tensor):
        return steps
    size = int(tensor.shape[wrap(dim, len(tensor.shape))])
    copy = None if contiguous(tensor) else steps.take(bytes_of(tensor))
    slices = numel(tensor) // size
    if several_blocks(slices, size):
        topk_buffers(steps, slices, size, item_bytes(tensor), ctx)
    if ordered and k > SMALL_SORT:
        item, count = item_bytes(tensor), slices * k
        pair = [steps.take(count * 8), steps.take(count * item)]
        stable_sort(steps, count, k, item)
        steps.spend(count * 8)
        steps.give(*reversed(pair))
    return steps.give(copy)


def median(args, kwargs, outs, ctx):
    """The whole tensor sorted, and a look for NaN."""
    tensor = args[0]
    count, item = numel(tensor), item_bytes(tensor)
    steps = Steps()
    if not count:
        return steps.out(0)
    values, places = steps.take(count * item), steps.take(count * 8)
    order = steps.take(count * 8)
    if count > SMALL_SORT:
        steps.give(steps.take(cub.radix(count, item, 8)))
    steps.give(order, places)
    nan = steps.take(1)
    return steps.out(0).give(nan, values)


def cumulative(converts):
    """cumsum and its kin: one row of a contiguous tensor by CUB; otherwise by a kernel of their
    own, which takes a copy if the elements do not lie in order."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        dim = int(argument(args, kwargs, 1, "dim", 0))
        steps = Steps().out(0)
        count = numel(tensor)
        if not count:
            return steps
        if not tensor.shape:
            return steps
        out = dtype_of(outs[0])
        made = None
        if converts and dtype_of(tensor) != out:
            made = steps.take(count * item_bytes(out))
        if int(tensor.shape[wrap(dim, len(tensor.shape))]) == count and (made is not None or
                                                                         contiguous(tensor)):
            steps.spend(cub.scan(count, item_bytes(out)))
        elif made is None and not contiguous(tensor):
            made = steps.take(bytes_of(tensor))
        return steps.give(made)
    return rule


def unique2(args, kwargs, outs, ctx):
    tensor = args[0]
    inverse = argument(args, kwargs, 2, "return_inverse", False)
    counts = argument(args, kwargs, 3, "return_counts", False)
    count, item, name = numel(tensor), item_bytes(tensor), dtype_of(tensor)
    steps = Steps()
    if not count:
        return steps
    if name == "bool":
        number = steps.take(4)
        steps.spend(cub.count(count, ctx.sms))
        steps.out(0)
        if inverse:
            steps.out(2).out(1)
        else:
            steps.out(1)
        return steps.give(number)
    whole = name.startswith(("int", "uint"))
    ordered = steps.take(count * item)
    if inverse:
        order, places = steps.take(count * 8), steps.take(count * 8)
        steps.spend(cub.radix(count, item, 8))
        steps.give(order).out(1)
        steps.spend(count * 8, cub.scan_int(count))
    else:
        places = None
        steps.spend(cub.radix(count, item, 0, integer=whole and item == 4))
    steps.out(0)
    unique_tail(steps, count, item, name, counts)
    return steps.give(places, ordered)


def unique_tail(steps, count, item, name, counts):
    """The distinct values, with their counts if asked for."""
    number = steps.take(8)
    if counts:
        steps.out(2)
        steps.spend(cub.run_lengths(count))
    else:
        steps.spend(cub.select_unique(count, item, name))
    steps.give(number)


def unique_consecutive(args, kwargs, outs, ctx):
    tensor = args[0]
    inverse = argument(args, kwargs, 1, "return_inverse", False)
    counts = argument(args, kwargs, 2, "return_counts", False)
    count = numel(tensor)
    dim = argument(args, kwargs, 3, "dim")
    if dim is not None:
        rows = int(tensor.shape[int(dim)]) if tensor.shape else 1
        return Steps().unsure(0, 40 * rows).spend(rows * 8, cub.storage(512, 768))
    steps = Steps()
    if not count:
        return steps
    if inverse:
        steps.out(1)
        steps.spend(count * 4, cub.scan_int(count))
    steps.out(0)
    unique_tail(steps, count, item_bytes(tensor), dtype_of(tensor), counts)
    return steps


def randperm(args, kwargs, outs, ctx):
    """Random keys of just enough bits, sorted with the numbers (Randperm.cu)."""
    count, item = int(args[0]), item_bytes(outs[0])
    steps = Steps().out(0)
    if not count:
        return steps
    steps.spend(item)
    bits = min(64, math.ceil(math.log2(count - (6.0 * count * count + 1) / (math.log(0.9) * 12))))
    key = 4 if bits <= 32 else 8
    steps.spend(count * item, count * key, count * key, cub.radix(count, key, item, bits))
    return steps


def extremes(steps, tensor, ctx):
    """self.min().item() and self.max().item()."""
    for _ in range(2):
        number = steps.take(item_bytes(tensor))
        reduce(steps, tensor, range(len(tensor.shape)), item_bytes(tensor), ctx)
        steps.give(number)


def bincount(args, kwargs, outs, ctx):
    steps = Steps()
    if numel(args[0]):
        extremes(steps, args[0], ctx)
    return steps.out(0)


def histc(args, kwargs, outs, ctx):
    steps = Steps().out(0)
    low = argument(args, kwargs, 2, "min", 0)
    high = argument(args, kwargs, 3, "max", 0)
    if low == high and numel(args[0]):
        extremes(steps, args[0], ctx)
    return steps


def multinomial(args, kwargs, outs, ctx):
    """Checks of the probabilities; for one sample and without replacement, exponential noise and its largest values
    (Distributions.cpp)."""
    tensor, samples = args[0], int(args[1])
    replacement = argument(args, kwargs, 2, "replacement", False)
    if replacement and samples > 1:
        return Steps().out(0).unsure(0, 3 * bytes_of(tensor))
    item, shape = item_bytes(tensor), [int(s) for s in tensor.shape]
    rows = shape[0] if len(shape) == 2 else 1
    columns = shape[-1]
    every = range(len(shape))
    accumulator = 8 if item == 8 else 4
    steps = Steps().out(0)
    most = steps.take(item)
    reduce(steps, tensor, every, item, ctx)
    below = steps.take(1)
    least = steps.take(item)
    reduce(steps, tensor, every, item, ctx)
    above = steps.take(1)
    valid = steps.take(1)
    steps.give(above, least, below, most)
    total = steps.take(rows * item)
    reduce(steps, tensor, (len(shape) - 1,), accumulator, ctx)
    zero = steps.take(rows)
    some = None
    if len(shape) == 1:
        steps.give(total)
    else:
        some = steps.take(1)
        reduce(steps, tensor, (0,), 1, ctx, "bool", [1], shape=[rows])
        steps.give(zero, total)
    steps.spend(1)
    noise = steps.take(bytes_of(tensor))
    if samples == 1:
        reduce(steps, tensor, (len(shape) - 1,), 16, ctx, strides=plain_strides(shape))
    else:
        values = steps.take(rows * samples * item)
        if several_blocks(rows, columns):
            topk_buffers(steps, rows, columns, item, ctx)
        steps.give(values)
    steps.give(noise)
    return steps.give(some if some is not None else zero, valid)


RULES = {
    "aten.sort.default": sort(1), "aten.sort.stable": sort(None), "aten.topk.default": topk,
    "aten.median.default": median, "aten.cumsum.default": cumulative(True),
    "aten.cumprod.default": cumulative(True), "aten.logcumsumexp.default": cumulative(False),
    "aten._unique2.default": unique2, "aten.unique_consecutive.default": unique_consecutive,
    "aten.randperm.default": randperm, "aten.bincount.default": bincount,
    "aten.histc.default": histc, "aten.multinomial.default": multinomial,
}
