"""Indexing, scattering and embeddings.

Source: PyTorch 2.11, aten/src/ATen/native/cuda/Indexing.cu (index_put with accumulation sorts a
linear index), Nonzero.cu, IndexKernel.cpp, Embedding.cu, EmbeddingBackwardKernel.cu,
EmbeddingBag.cu, aten/src/ATen/native/TensorAdvancedIndexing.cpp.
"""
import functools

from . import kernels_cub as cub
from .kernels_reduce import plain_strides, reduce
from .kernels_shape import (HALF, Steps, argument, bytes_of, ceil_div, contiguous, dtype_of, in_order, is_tensor,
                            item_bytes, numel, on_card, product, round_up, strides_of)

FEW = 3072  # embedding_dense_backward sorts more indices than these


def nonzero_places(steps, tensor, found, ctx):
    """at::nonzero: the number, then the places (found * dimensions numbers of 8 bytes)."""
    copy = None if contiguous(tensor) else steps.take(bytes_of(tensor))
    number = steps.take(4)
    steps.spend(cub.count(numel(tensor), ctx.sms))
    places = found(steps)
    steps.spend(cub.select_flagged(numel(tensor)))
    steps.give(number, copy)
    return places


def nonzero(args, kwargs, outs, ctx):
    steps = Steps()
    if not numel(args[0]):
        return steps
    nonzero_places(steps, args[0], lambda s: s.out(0), ctx)
    return steps


def masks(indices):
    return [i for i in indices if is_tensor(i) and dtype_of(i) in ("bool", "uint8")]


def expanded_strides(tensor, shape):
    """at::inferExpandGeometry: the strides of a tensor that is expanded to a shape."""
    have, strides, given = [int(s) for s in tensor.shape], strides_of(tensor), []
    for place in range(1, len(shape) + 1):
        size, stride = (have[-place], strides[-place]) if place <= len(have) else (
            1, shape[-place + 1] * given[-1] if given else 1)
        given.append(0 if size == 1 and shape[-place] != 1 else stride)
    return given[::-1]


def of_host(steps, indices):
    """Indices on the host are copied to the card."""
    return [steps.take(bytes_of(i)) for i in indices if is_tensor(i) and not on_card(i) and len(i.shape)]


def widened(steps, indices):
    """TensorAdvancedIndexing.cpp, make_info: indices of 32 bits become such of 64 once all are expanded."""
    found = [i for i in indices if is_tensor(i)]
    shape = functools.reduce(broadcast, [i.shape for i in found]) if found else ()
    return [steps.take(8 * product(int(s) for s in shape)) for i in found if on_card(i) and dtype_of(i) == "int32"]


def same_striding(steps, indices):
    """AdvancedIndex: two or more indices on a card have the same strides, or all become contiguous. Masks are
    divided into indices of the same strides. Returns the copies in the order in which they are freed."""
    indices = [i for i in indices if is_tensor(i)]
    if len(indices) < 2 or masks(indices) or not all(on_card(i) for i in indices):
        return []
    shape = functools.reduce(broadcast, [i.shape for i in indices])
    shape = [int(s) for s in shape]
    strides = [expanded_strides(i, shape) for i in indices]
    if all(s == strides[0] for s in strides):
        return []
    return [steps.take(product(shape) * 8) for s in strides if not in_order(shape, s)][::-1]


def index(args, kwargs, outs, ctx):
    """A mask becomes places first; how many there are is read off the result."""
    tensor, indices = args[0], args[1]
    found = masks(indices)
    steps = Steps()
    copied = of_host(steps, indices)
    if not found:
        copied += widened(steps, indices)
        made = same_striding(steps, indices)
        return steps.out(0).give(*made, *reversed(copied))
    if len(found) > 1:
        return steps.out(0).unsure(0, sum(numel(m) * len(m.shape) * 8 for m in found))
    mask = found[0]
    rest, dim = 1, 0
    for item in indices:
        dims = len(mask.shape) if item is mask else 1
        if item is None:
            rest *= int(tensor.shape[dim])
        dim += dims
    count = numel(outs[0]) // max(1, rest * product(tensor.shape[dim:]))
    places = nonzero_places(steps, mask, lambda s: s.take(count * len(mask.shape) * 8), ctx)
    return steps.out(0).give(places)


def check_range(steps, tensor, count, ctx):
    """The largest and the smallest index are read back."""
    for _ in range(2):
        value = steps.take(8)
        reduce(steps, tensor, (0,), 8, ctx, "int64", [1], shape=[count])
        steps.give(steps.take(1))
        steps.give(value)


def sorted_put(steps, tensor, indices, count, values, ctx, mask_places=None, unsafe=False, on_host=False):
    """index_put_with_sort_kernel: the linear index, its sort with the positions. The places of a
    mask are freed once the linear index is made. Indices on the host are weighted there, and each is copied."""
    linear, places = None, [p for p, i in enumerate(indices) if i is not None]
    if on_host:
        linear = steps.take(count * 8)
        for _ in places[1:]:
            steps.spend(count * 8)
    for number in range(0 if on_host else len(places)):
        if not unsafe:
            check_range(steps, None, count, ctx)
        first, second = steps.take(count * 8), steps.take(count * 8)
        if linear is None:
            linear = second
            steps.give(first)
        else:
            steps.give(first, second)
    steps.give(mask_places)
    expanded = steps.take(values)
    made = [steps.take(count * 8), steps.take(count * 8), steps.take(count * 8)]
    if getattr(ctx, "deterministic_algorithms", False):
        steps.spend(8)
    shape = [int(s) for s in tensor.shape]
    last = max(places) if places else 0
    slice_size = product(shape[last + 1:])
    largest = max(0, product(shape) - 1) // max(1, slice_size)
    steps.spend(cub.radix(count, 8, 8, cub.bits_of(largest)))
    steps.give(*reversed(made))
    return steps.give(expanded, linear)


def index_put(outputs):
    def rule(args, kwargs, outs, ctx):
        tensor, indices, values = args[0], args[1], args[2]
        accumulate = argument(args, kwargs, 3, "accumulate", False)
        steps = Steps()
        if outputs:
            steps.out(0)
        brought = None
        found = masks(indices)
        if found and not accumulate and numel(values) == 1:
            return steps  # masked_fill
        if not on_card(values):
            brought = steps.take(bytes_of(values))
        sorts = accumulate or getattr(ctx, "deterministic_algorithms", False)
        if not found and not sorts:
            copied = of_host(steps, indices) + widened(steps, indices)
            return steps.give(*same_striding(steps, indices), *reversed(copied), brought)
        on_host = [not on_card(i) for i in indices if is_tensor(i)]
        if len(found) > 1 or any(on_host) and (found or not all(on_host)):
            return steps.unsure(0, 48 * sum(numel(i) for i in indices if is_tensor(i)))
        width, places = 1, None
        if found:
            mask = found[0]
            dims = len(mask.shape)
            rest = product(s for d, s in enumerate(tensor.shape) if d >= dims)
            if len(values.shape) == len(tensor.shape) - dims + 1 and numel(values) > 1:
                count = numel(values) // max(1, rest)
            else:  # how many elements the mask has is not known: half of them
                count = numel(mask) // 2
                steps.unsure(0, numel(mask) * dims * 8)
            places = nonzero_places(steps, mask, lambda s: s.take(count * dims * 8), ctx)
            if not sorts:
                return steps.give(places)
            indices = [True] * dims
        else:
            count = max(numel(i) for i in indices if i is not None)
        if not count:
            return steps
        places_of = [p for p, i in enumerate(indices) if i is not None]
        width = product(s for p, s in enumerate(tensor.shape)
                        if p >= len(indices) or indices[p] is None)
        full = count * width * item_bytes(tensor)
        if numel(values) != count * width:
            expand = full if places_of == [0] and not found else 0
        else:
            expand = 0 if contiguous(values) else full
        unsafe = argument(args, kwargs, 4, "unsafe", False)  # as in backward: indices are not checked
        sorted_put(steps, tensor, indices, count, expand, ctx, places, unsafe, any(on_host))
        return steps.give(brought)
    return rule


def masked_select(args, kwargs, outs, ctx):
    tensor, mask = args[0], args[1]
    shape = broadcast(tensor.shape, mask.shape)
    total = product(shape)
    steps = Steps()
    if not total:
        return steps.out(0)
    copy = steps.take(total) if numel(mask) != total else None
    number = steps.take(4)
    steps.spend(cub.count(total, ctx.sms))
    places = steps.take(numel(outs[0]) * len(shape) * 8)
    steps.spend(cub.select_flagged(total))
    steps.give(number, copy).out(0)
    return steps.give(places)


def broadcast(first, second):
    first, second = [int(s) for s in first], [int(s) for s in second]
    size = max(len(first), len(second))
    first, second = [1] * (size - len(first)) + first, [1] * (size - len(second)) + second
    return [b if a == 1 else a for a, b in zip(first, second)]


def masked_scatter(outputs):
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        steps = Steps()
        if outputs:
            steps.out(0)
        if numel(tensor):
            copy = numel(tensor) if numel(args[1]) != numel(tensor) else 0
            steps.spend(numel(tensor) * 8, copy, cub.scan(numel(tensor), 8))
        return steps
    return rule


def masked_scatter_backward(args, kwargs, outs, ctx):
    """The gradient's selected elements (half of them, since how many is not known), then zeros."""
    grad, mask = args[0], args[1]
    total, half = numel(grad), numel(grad) // 2
    steps = Steps()
    places = nonzero_places(steps, mask, lambda s: s.take(half * len(grad.shape) * 8), ctx)
    chosen = steps.take(half * item_bytes(grad))
    steps.give(places)
    zeros = steps.take((total - half) * item_bytes(grad))
    steps.unsure(0, total * len(grad.shape) * 8)
    return steps.out(0).give(zeros, chosen)


def index_add(args, kwargs, outs, ctx):
    """In deterministic mode index_put with accumulation, after a product of source and alpha."""
    steps = Steps().out(0)
    tensor, dim, places, source = args[0], int(args[1]), args[2], args[3]
    if not getattr(ctx, "deterministic_algorithms", False):
        return steps
    scaled = steps.take(bytes_of(source))
    sorted_put(steps, tensor, [None] * dim + [True], numel(places), 0, ctx)
    return steps.give(scaled)


def scatter_add(args, kwargs, outs, ctx):
    """In deterministic mode index_put with accumulation, for tensors of one dimension."""
    steps = Steps().out(0)
    if not getattr(ctx, "deterministic_algorithms", False) or len(args[0].shape) != 1:
        return steps
    source = args[3]
    copy = 0 if contiguous(source) else bytes_of(source)
    sorted_put(steps, args[0], [True], numel(args[2]), copy, ctx)
    return steps


def reduce_mean(place_source, self_first):
    """index_reduce and scatter_reduce of a mean: counts of self's and source's size."""
    def rule(args, kwargs, outs, ctx):
        how = args[place_source + 1]
        steps = Steps().out(0)
        if how != "mean":
            return steps
        counts, ones = bytes_of(args[0]), bytes_of(args[place_source])
        if self_first:
            first = steps.take(counts)
            steps.spend(ones).spend(numel(args[0]))
            return steps.give(first)
        return steps.spend(ones, counts, numel(args[0]))
    return rule


def repeat_interleave(args, kwargs, outs, ctx):
    """The cumulated repeats, and a check that none is negative if the result's size is unknown."""
    tensor = args[0]
    count = numel(tensor)
    steps = Steps()
    if not count:
        return steps.out(0)
    item = item_bytes(tensor)
    total = steps.take(count * 8)
    cast = steps.take(count * 8) if item != 8 else None
    steps.spend(cub.scan(count, 8)).give(cast)
    if argument(args, kwargs, None, "output_size") is None:
        steps.spend(count, 1)
    return steps.out(0).give(total)


def adds_atomically(segments, parts, width, ctx):
    """use_fused_kernel: few rows with many indices each."""
    warped = round_up(width, 32)
    grid = ceil_div(segments * warped, min(warped, 1024))
    return (grid < ctx.sms * 4 and parts > grid * 4
            and not getattr(ctx, "deterministic_algorithms", False))


def sorted_gradient(steps, grad, count, rows, item_index, ctx, by_frequency, bags=False):
    """embedding_backward_cuda_kernel, with the sort before it."""
    each = count * item_index
    ordered, places, order = steps.take(each), steps.take(each), steps.take(each)
    steps.spend(cub.radix(count, item_index, item_index)).give(order)
    counts = None
    if by_frequency:
        counts = steps.take(each)
        space = cub.scan_by_key(count, item_index)
        steps.spend(space).spend(space)
    steps.out(0)
    offsets, number, keys = steps.take(each), steps.take(8), steps.take(each)
    steps.spend(cub.unique_by_key(count, item_index)).give(keys)
    segments = min(count, rows)
    partial = [steps.take(segments * item_index), steps.take(segments * item_index)]
    steps.spend(cub.scan(segments, item_index))
    total = steps.take(8)
    parts = count // 10 + segments
    width = int(grad.shape[-1])
    wide = 8 if dtype_of(grad) == "float64" else 4
    starts = steps.take(parts * item_index)
    extra = None
    if adds_atomically(segments, parts, width, ctx) and not bags:
        # each part adds to its row; float16 and bfloat16 in a copy of float32
        sums = steps.take(parts * item_index)
        if dtype_of(grad) in HALF:
            extra = steps.take(rows * width * 4)
    else:
        sums = steps.take(parts * width * wide)
    steps.give(extra, sums, starts, total, *reversed(partial))
    return steps.give(number, offsets, counts, places, ordered)


def embedding_dense_backward(args, kwargs, outs, ctx):
    grad, indices, rows = args[0], args[1], int(args[2])
    by_frequency = bool(args[4])
    count = numel(indices)
    steps = Steps()
    made = [None if contiguous(t) else steps.take(bytes_of(t)) for t in (indices, grad)]
    if not count or count <= FEW and not by_frequency:
        steps.out(0)
    else:
        sorted_gradient(steps, grad, count, rows, item_bytes(indices), ctx, by_frequency)
    return steps.give(*reversed(made))


def embedding(args, kwargs, outs, ctx):
    """native/Embedding.cpp: index_select of the indices in one dimension, which are copied if they have gaps."""
    steps, indices = Steps(), args[1]
    copy = None if len(indices.shape) < 2 or one_dimension(indices) else steps.take(bytes_of(indices))
    return steps.out(0).give(copy)


def one_dimension(tensor):
    """Whether reshape(-1) is a view (computeStride in TensorUtils.cpp): each dimension follows the next one."""
    dims = [(int(n), int(s)) for n, s in zip(tensor.shape, tensor.stride()) if n != 1]
    return all(s == n * t for (_, s), (n, t) in zip(dims, dims[1:]))


def embedding_bag(args, kwargs, outs, ctx):
    steps = Steps()
    for place in (2, 1, 0, 3):
        steps.out(place)
    return steps


def embedding_bag_backward(args, kwargs, outs, ctx):
    grad, indices, rows = args[0], args[1], int(args[6])
    by_frequency, mode, sparse = bool(args[7]), int(args[8]), bool(args[9])
    steps = Steps()
    if sparse:
        if mode == 1:  # the sizes of the bags, and each index's share of the gradient
            item = item_bytes(grad)
            bags = numel(args[4]) * item
            made = [steps.take(bags), steps.take(bags), steps.take(numel(indices) * item)]
            return steps.give(made[1], made[0], made[2])
        return steps
    if mode == 2 or not numel(indices):
        copy = None if contiguous(grad) else steps.take(bytes_of(grad))
        return steps.out(0).give(copy)
    return sorted_gradient(steps, grad, numel(indices), rows, item_bytes(indices), ctx,
                           by_frequency, True)


def isin(args, kwargs, outs, ctx):
    """TensorCompare.cpp and .cu: few test elements are compared with each element; more are sorted."""
    elements, tests = numel(args[0]), numel(args[1])
    steps = Steps().out(0)
    if not elements or not tests:
        return steps
    if tests >= int(10 * elements ** 0.145):
        return steps.unsure(0, 16 * (4 * elements + 3 * tests))  # unique, concatenation and a stable sort
    equal = steps.take(elements * tests)
    found = steps.take(elements)
    reduce(steps, None, (1,), 1, ctx, "bool", plain_strides([elements, tests]), shape=[elements, tests])
    return steps.give(found, equal)


RULES = {
    "aten.isin.Tensor_Tensor": isin,
    "aten.nonzero.default": nonzero, "aten.index.Tensor": index,
    "aten.index_put.default": index_put(True), "aten.index_put_.default": index_put(False),
    "aten._index_put_impl_.default": index_put(False), "aten._unsafe_index.Tensor": index,
    "aten._unsafe_index_put.default": index_put(True),
    "aten.masked_select.default": masked_select,
    "aten.masked_scatter.default": masked_scatter(True),
    "aten.masked_scatter_.default": masked_scatter(False),
    "aten.masked_scatter_backward.default": masked_scatter_backward,
    "aten.index_add.default": index_add, "aten.scatter_add.default": scatter_add,
    "aten.index_reduce.default": reduce_mean(3, True),
    "aten.scatter_reduce.two": reduce_mean(3, False),
    "aten.repeat_interleave.Tensor": repeat_interleave,
    "aten.embedding.default": embedding,
    "aten.embedding_dense_backward.default": embedding_dense_backward,
    "aten._embedding_bag.default": embedding_bag,
    "aten._embedding_bag_forward_only.default": embedding_bag,
    "aten._embedding_bag_backward.default": embedding_bag_backward,
}
