"""Softmax, normalization and losses.

Source: PyTorch 2.11, aten/src/ATen/native/cuda/SoftMax.cu, layer_norm_kernel.cu,
group_norm_kernel.cu, aten/src/ATen/native/ReduceOps.cpp (logsumexp) and SoftMax.cpp.
"""
from .kernels_reduce import plain_strides, reduce, sort_dimensions
from .kernels_shape import (Steps, argument, bytes_of, ceil_div, contiguous, dense, dtype_of,
                            is_tensor, item_bytes, numel, product, strides_of, wrap)


def copy_of(steps, *tensors):
    """contiguous() of an operator's inputs, in order; what is contiguous already costs nothing."""
    return [steps.take(bytes_of(t)) for t in tensors if is_tensor(t) and not contiguous(t)]


def softmax(args, kwargs, outs, ctx):
    steps = Steps().out(0)
    return steps.give(*copy_of(steps, args[0]))


def product_in_order(first, second):
    """Whether the product of two tensors is contiguous: its dimensions lie as those of the operands."""
    shape = [int(s) for s in first.shape]
    order = sort_dimensions(shape, [strides_of(first), strides_of(second)], reduction=False)
    order = [d for d in order if shape[d] > 1]
    return order == sorted(order, reverse=True)


def softmax_backward(args, kwargs, outs, ctx):
    """The product of gradient and output is a tensor of its own, and is copied if it is not contiguous."""
    steps, grad, output = Steps().out(0), args[0], args[1]
    made = [steps.take(bytes_of(grad))]
    if not contiguous(grad) and not product_in_order(grad, output):
        made.append(steps.take(bytes_of(grad)))
    return steps.give(*reversed(made))


def log_softmax_backward(args, kwargs, outs, ctx):
    steps = Steps().out(0)
    return steps.give(*reversed(copy_of(steps, args[0], args[1])))


def safe_softmax(args, kwargs, outs, ctx):
    """softmax, then a mask of the rows that are -inf throughout."""
    tensor = args[0]
    dim = wrap(args[1], max(1, len(tensor.shape)))
    rows = numel(tensor) // max(1, int(tensor.shape[dim]))
    steps = softmax(args, kwargs, outs, ctx)
    mask = steps.take(numel(tensor))
    every = steps.take(rows)
    reduce(steps, tensor, (dim,), 1, ctx, "bool", plain_strides(tensor.shape))
    zero = steps.take(item_bytes(outs[0]))
    return steps.give(zero, every, mask)


def logsumexp(args, kwargs, outs, ctx):
    """exp(self - amax) summed: the maxima, their mask, and the exponentials."""
    tensor = args[0]
    dims = args[1] if isinstance(args[1], (list, tuple)) else (args[1],)
    dims = dims or range(len(tensor.shape))
    shape = [int(s) for s in tensor.shape]
    wrapped = {wrap(int(d), len(shape)) for d in dims} if shape else set()
    rows = product(s for d, s in enumerate(shape) if d not in wrapped)
    item = item_bytes(outs[0])
    steps = Steps()
    most = steps.take(rows * item)
    reduce(steps, tensor, dims, item, ctx)
    size = steps.take(rows * item)
    infinite = steps.take(rows)
    steps.give(infinite, size)
    powers = steps.take(numel(tensor) * item)
    steps.out(0)
    reduce(steps, tensor, dims, max(4, item), ctx,
           strides=None if dense(tensor) else plain_strides(tensor.shape))
    return steps.give(powers, most)


def layer_norm(args, kwargs, outs, ctx):
    steps = Steps()
    made = copy_of(steps, args[0], argument(args, kwargs, 2, "weight"),
                   argument(args, kwargs, 3, "bias"))
    steps.out(0).out(1).out(2)
    return steps.give(*reversed(made))


def layer_norm_backward(places):
    """places: of gradient, input, shape, weight and mask. Many rows of few elements sum the
    gradients of weight and bias in blocks of 32 rows first (LaunchGammaBetaBackwardCUDAKernel)."""
    def rule(args, kwargs, outs, ctx):
        grad, tensor, shape = (args[p] for p in places[:3])
        weight, mask = args[places[3]], args[places[4]]
        columns = product(int(s) for s in shape)
        rows = numel(tensor) // max(1, columns)
        steps = Steps()
        made = copy_of(steps, tensor, weight)
        blocks = rows > 64 * 1024 and columns // 32 < ctx.sms // 2
        wanted = [index for index, want in enumerate(mask) if want]
        if not blocks or wanted == [0]:
            for index in range(len(wanted)):
                steps.out(index)
            return steps.give(*reversed(made + copy_of(steps, grad)))
        item = item_bytes(tensor)
        names = {place: index for index, place in enumerate(wanted)}
        if 0 in names:
            steps.out(0)
        sums = [place for place in wanted if place > 0]
        first = [steps.take(columns * item) for _ in sums]
        made += copy_of(steps, grad)
        parts = [steps.take(ceil_div(rows, 32) * columns * item) for _ in sums]
        for number, place in enumerate(sums):
            steps.out(names[place])
            reduce(steps, None, (0,), 8 if item == 8 else 4, ctx, tensor,
                   [columns, 1], shape=[ceil_div(rows, 32), columns])
            steps.give(first[number])
        steps.give(*reversed(parts))
        return steps.give(*reversed(made))
    return rule


def group_norm(args, kwargs, outs, ctx):
    """The scale and shift of each channel, unless there is neither weight nor bias."""
    tensor, weight, bias = args[0], args[1], args[2]
    batch, channels, area = (int(args[p]) for p in (3, 4, 5))
    steps = Steps()
    steps.out(0).out(1).out(2)
    item = 8 if dtype_of(tensor) == "float64" else 4
    if area > 1 and (weight is not None or bias is not None):
        steps.spend(batch * channels * item, batch * channels * item)
    return steps


def group_norm_backward(args, kwargs, outs, ctx):
    tensor, weight = args[1], args[4]
    batch, channels, area, groups = (int(args[p]) for p in (5, 6, 7, 8))
    item = 8 if dtype_of(tensor) == "float64" else 4
    steps = Steps()
    made = copy_of(steps, args[0])
    for index in range(len(outs)):
        steps.out(index)
    plane, small = batch * channels * item, batch * groups * item
    if area == 1:  # GroupNorm1dBackward of cuda/group_norm_kernel.cu
        return steps.give(*reversed([steps.take(small), steps.take(small)] + made)) if outs else steps
    sums = [steps.take(plane), steps.take(plane)]
    two = [steps.take(small), steps.take(small)]
    one = steps.take(plane) if weight is not None else None
    return steps.give(two[1], two[0], one, sums[1], sums[0], *reversed(made))


def channels_last_kernels(tensor):
    """batch_norm_use_channels_last_kernels of Normalization.cuh: dense, and the channels lie side by side."""
    return len(tensor.shape) > 1 and dense(tensor) and (
        int(strides_of(tensor)[1]) == 1 or int(tensor.shape[1]) == 1 and not contiguous(tensor))


def last_power(value):
    return 1 << (max(1, int(value)).bit_length() - 1)


def batch_norm_blocks(tensor):
    """flexible_launch_configs of Normalization.cuh: (blocks along the channels, blocks that share a channel)."""
    channels = int(tensor.shape[1])
    rows = numel(tensor) // max(1, channels)
    wide = min(last_power(channels), 32)
    high = min(last_power(ceil_div(rows, 16)), 512 // wide)
    if wide * high != 512:
        wide = min(last_power(channels), 512 // high)
    shared = min(ceil_div(rows, high * 16), 128)
    return ceil_div(channels, wide), shared if shared >= 8 else 1


def shared_sums(steps, tensor, parts):
    """Partial sums of blocks that share a channel, and a semaphore for each group of blocks."""
    groups, shared = batch_norm_blocks(tensor)
    if shared > 1:
        steps.spend(parts * int(tensor.shape[1]) * shared * 4, 4 * groups)


def batch_norm(args, kwargs, outs, ctx):
    """native_batch_norm: cuda/Normalization.cu. Tensors whose channels lie side by side have kernels of their own."""
    steps = Steps().out(0).out(1).out(2)
    if args[5] and channels_last_kernels(args[0]):
        shared_sums(steps, args[0], 4)
    return steps


def batch_norm_backward(args, kwargs, outs, ctx):
    grad, tensor, training, mask = args[0], args[1], args[7], args[9]
    steps = Steps()
    if not training or not channels_last_kernels(tensor):
        return steps
    names = {place: index for index, place in enumerate(p for p in range(3) if mask[p])}
    sums = [steps.take(int(tensor.shape[1]) * 4) for _ in range(2)]
    for place in (1, 2):
        if place in names:
            steps.out(names[place])
    if channels_last_kernels(grad):
        shared_sums(steps, tensor, 2)
    if 0 in names:
        steps.out(names[0])
    return steps.give(*reversed(sums))


RULES = {
    "aten.native_batch_norm.default": batch_norm,
    "aten.native_batch_norm_backward.default": batch_norm_backward,
    "aten._softmax.default": softmax, "aten._log_softmax.default": softmax,
    "aten._softmax_backward_data.default": softmax_backward,
    "aten._log_softmax_backward_data.default": log_softmax_backward,
    "aten._safe_softmax.default": safe_softmax, "aten.logsumexp.default": logsumexp,
    "aten.native_layer_norm.default": layer_norm,
    "aten._fused_rms_norm.default": layer_norm,
    "aten.native_layer_norm_backward.default": layer_norm_backward((0, 1, 2, 5, 7)),
    "aten._fused_rms_norm_backward.default": layer_norm_backward((0, 1, 2, 4, 5)),
    "aten.native_group_norm.default": group_norm,
    "aten.native_group_norm_backward.default": group_norm_backward,
}
