"""Scaled dot product attention: FlashAttention, memory-efficient attention, cuDNN.

Source: PyTorch 2.11, aten/src/ATen/native/transformers/cuda/: flash_attn/flash_api.cpp (splits of
the keys, rounding of lengths and widths, accumulators of the backward pass),
mem_eff_attention/kernel_forward.h and kernel_backward.h (workspace of the backward pass),
attention.cu and attention_backward.cu (delta, copies of gradients). The workspaces of cuDNN 9.19
are fits (exact in all rows measured). Backward: a float32 accumulator of the queries' gradient, the
row sums, 256 bytes, and the gradients of expanded keys and values. Forward: 256 bytes; for a single
query the keys are split over the multiprocessors, with a partial result of each part.
"""
import math

from .kernels_shape import (HALF, Steps, argument, bytes_of, ceil_div, dtype_of, item_bytes,
                            round_up, strides_of)


def swapped(tensor):
    """Whether (batch, heads, length, width) is contiguous as (batch, length, heads, width)."""
    shape, strides = [int(s) for s in tensor.shape], strides_of(tensor)
    expected = 1
    for dim in (3, 1, 2, 0):
        if shape[dim] != 1 and strides[dim] != expected:
            return False
        expected *= shape[dim]
    return True


def width_rounded(width):
    """head_size_rounded: 32 up to 192, then 256."""
    return round_up(width, 32) if width <= 192 else 256


def splits(blocks, processors, key_blocks, most=128):
    """num_splits_heuristic of flash_api.cpp."""
    if blocks >= 0.8 * processors:
        return 1
    most = min(most, processors, key_blocks)

    def eligible(n):
        return n == 1 or ceil_div(key_blocks, n) != ceil_div(key_blocks, n - 1)

    gains = []
    for n in range(1, most + 1):
        waves = blocks * n / processors
        gains.append(waves / -int(-waves // 1) if eligible(n) else 0.0)
    for n in range(1, most + 1):
        if eligible(n) and gains[n - 1] >= 0.85 * max(gains):
            return n
    return 1


def flash(args, kwargs, outs, ctx):
    query, key = args[0], args[1]
    dropout = argument(args, kwargs, 3, "dropout_p", 0.0)
    steps = Steps().out(0).out(1)
    if dropout > 0:
        seed = steps.take(16)
        return steps.out(3).out(2).give(seed)
    made = split_buffers(steps, query, key, ctx)
    return steps.out(2).out(3).give(*made)


def split_buffers(steps, query, key, ctx):
    batch, heads, length, width = [int(s) for s in query.shape]
    key_heads, keys = int(key.shape[1]), int(key.shape[2])
    if length == 1 and heads > key_heads and width % 8 == 0:
        length, heads = heads // key_heads, key_heads
    block = 256 if width <= 64 else 128 if width <= 128 else 64
    count = splits(batch * heads * ceil_div(length, 64), ctx.sms * 2, ceil_div(keys, block))
    if count <= 1:
        return []
    rows = count * batch * heads * length * 4
    return [steps.take(rows), steps.take(rows * width_rounded(width))]


def flash_backward(args, kwargs, outs, ctx):
    grad, query, key, out = args[0], args[1], args[2], args[4]
    steps = Steps()
    made = [steps.take(bytes_of(t)) for t in (grad, out) if not swapped(t)]
    steps.out(0).out(1).out(2)
    batch, heads, length, width = [int(s) for s in query.shape]
    key_heads, keys = int(key.shape[1]), int(key.shape[2])
    rows = round_up(length, 128) * batch * heads * 4
    wide = rows * width_rounded(width)
    if getattr(ctx, "deterministic_algorithms", False):
        wide *= max(1, ceil_div(ctx.sms, batch * heads))
    made += [steps.take(rows), steps.take(wide)]
    if heads != key_heads:
        expanded = batch * keys * heads * width * item_bytes(query)
        made += [steps.take(expanded), steps.take(expanded)]
    return steps.give(*reversed(made))


def efficient(args, kwargs, outs, ctx):
    query, value = args[0], args[2]
    steps = Steps().out(0).out(1).out(2, 0).out(3, 0)  # seed and offset are on the host
    width = int(value.shape[3])
    if width > 128 and dtype_of(query) in HALF:
        batch, heads, length, _ = [int(s) for s in query.shape]
        steps.spend(batch * heads * length * width * 4)
    return steps


def efficient_workspace(query, key, value):
    """workspace_size of kernel_backward.h: tiles of the queries' gradient with a lock of 16 bytes;
    beyond a width of 128, float16 and bfloat16 stage the gradients of keys and values as well."""
    batch, heads, length, width = [int(s) for s in query.shape]
    keys, wide = int(key.shape[2]), max(width, int(value.shape[3]))
    half = dtype_of(query) in HALF
    if wide <= 64:
        rows, columns = 64, 64
    elif half and wide <= 128:
        rows, columns = 128, 128
    else:
        rows, columns = 128, 64
    elements = ceil_div(length, rows) * ceil_div(width, columns) * (rows * columns + 4)
    if half and wide > 128:
        parts = ceil_div(keys, 64)
        if batch * heads >= 256 and keys <= 2 * 64:
            parts = 1
        parts = max(1, min(parts, 200 // (batch * heads)))
        elements += parts * 64 * (round_up(width, 128) + round_up(int(value.shape[3]), 128))
    return round_up(elements, 4) * batch * heads * 4


def efficient_backward(args, kwargs, outs, ctx):
    grad, query, key, value = args[0], args[1], args[2], args[3]
    steps = Steps()
    copy = None if swapped(grad) else steps.take(bytes_of(grad))
    steps.out(0).out(1).out(2)
    if len(outs) > 3 and outs[3] is not None:  # the bias's: rows have a multiple of 16 numbers
        *most, last = [int(s) for s in outs[3].shape]
        steps.out(3, math.prod(most) * -(-last // 16) * 16 * item_bytes(outs[3]))
    batch, heads, length, width = [int(s) for s in query.shape]
    rows = batch * heads * length * 4
    if dtype_of(query) in HALF:
        delta = steps.take(rows)
    else:
        product = steps.take(batch * heads * length * int(value.shape[3]) * item_bytes(query))
        delta = steps.take(rows)
        if heads > 1 and length > 1:
            total, delta = delta, steps.take(rows)
            steps.give(total)
        steps.give(product)
    space = steps.take(efficient_workspace(query, key, value))
    return steps.give(delta, space, copy)


def cudnn(args, kwargs, outs, ctx):
    """Seed and offset first, then the outputs; 256 bytes of workspace. The sums of the rows are an
    output only if they are asked for."""
    steps = Steps()
    floats = [i for i, out in enumerate(outs) if not dtype_of(out).startswith(("int", "uint"))]
    for index in range(len(outs)):
        if index not in floats:
            steps.out(index)
    wanted = argument(args, kwargs, 4, "compute_log_sumexp", False)
    for index in floats:
        steps.out(index, None if wanted or index == floats[0] else 0)
    if int(args[0].shape[2]) > 1:
        return steps.spend(256)
    causal = argument(args, kwargs, 6, "is_causal", False)
    return steps.spend(0 if causal else decode_space(args[0], args[1], ctx))


def decode_space(query, key, ctx):
    batch, heads, _, width = [int(s) for s in query.shape]
    groups = batch * int(key.shape[1])
    tiles = max(1, int(key.shape[2]) // 128)
    parts = min(1 << (tiles.bit_length() - 1), 1 << (ceil_div(ctx.sms, groups) - 1).bit_length())
    return parts * batch * heads * (width + 2) * 4 + 128 if parts > 2 else 0


def cudnn_backward(args, kwargs, outs, ctx):
    query, key, value = args[1], args[2], args[3]
    batch, heads, length, width = [int(s) for s in query.shape]
    key_heads, keys = int(key.shape[1]), int(key.shape[2])
    size = batch * heads * length * (width + 1) * 4 + 256
    if heads != key_heads:
        for columns in (width, int(value.shape[3])):
            size += round_up(batch * heads * keys * columns * item_bytes(query), 128)
    steps = Steps().out(0).out(1).out(2)
    steps.spend(size)
    return steps


RULES = {
    "aten._scaled_dot_product_flash_attention.default": flash,
    "aten._scaled_dot_product_flash_attention_backward.default": flash_backward,
    "aten._scaled_dot_product_efficient_attention.default": efficient,
    "aten._scaled_dot_product_efficient_attention_backward.default": efficient_backward,
    "aten._scaled_dot_product_cudnn_attention.default": cudnn,
    "aten._scaled_dot_product_cudnn_attention_backward.default": cudnn_backward,
}
