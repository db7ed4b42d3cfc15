"""Losses, copies between host and card, lists of tensors, distances, checks of arguments, and outputs in another order.

Source: PyTorch 2.11, aten/src/ATen/native/Loss.cpp, LossCTC.cu, cuda/Copy.cu, cuda/ForeachReduceOp.cu,
Distance.cpp, TensorTransformations.cu, RNN.cu, Dropout.cu, cuda/TensorShape.cu.
"""
import math

from .kernels_blas import keep_cublas
from .kernels_reduce import accumulator_bytes, all_dims, reduce
from .kernels_shape import (Steps, argument, bytes_of, ceil_div, contiguous, dense, dtype_of,
                            item_bytes, numel, on_card, product, strides_of, wrap)

CHUNK = 65536  # elements of a chunk of the multi-tensor kernels
PIECE_BYTES = 128 * 16  # what a block of threads copies in the kernels of pieces (BYTES_PER_BLOCK in TensorShape.cu)


def order(*places):
    """No memory of its own, but outputs in another order."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        for place in places:
            steps.out(place)
        return steps
    return rule


def real_part(made_first):
    """abs and angle of complex numbers are complex first, then their real parts are copied. abs has made its result
    before, angle makes it afterwards (UnaryOps.cpp)."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        if not dtype_of(args[0]).startswith("complex"):
            return steps
        if made_first:
            return steps.out(0).spend(bytes_of(args[0]))
        whole_numbers = steps.take(bytes_of(args[0]))
        return steps.out(0).give(whole_numbers)
    return rule


def isinf(args, kwargs, outs, ctx):
    """The absolute values are compared (TensorCompare.cpp)."""
    steps = Steps()
    if not dtype_of(args[0]).startswith(("float", "bfloat")):
        return steps
    size = steps.take(bytes_of(args[0]))
    return steps.out(0).give(size)


def normal_of_tensors(args, kwargs, outs, ctx):
    """That no deviation is negative is checked before and after the output is made (DistributionTemplates.h)."""
    deviations, steps = args[1], Steps()

    def check():
        least = steps.take(item_bytes(deviations))
        whole = None if contiguous(deviations) else steps.take(numel(deviations) * item_bytes(deviations))
        reduce(steps, deviations, range(len(deviations.shape)), item_bytes(deviations), ctx)
        if whole is not None:
            steps.give(whole)
        steps.give(steps.take(1), least)

    check()
    steps.out(0)
    check()
    return steps


def no_memory(args, kwargs, outs, ctx):
    """A tensor of zeros that only says so."""
    return Steps().out(0, 0)


def broadcast_bytes(args):
    """Bytes of the elementwise loss of input and target."""
    first, second = [[int(s) for s in t.shape] for t in args[:2]]
    size = max(len(first), len(second))
    pairs = zip([1] * (size - len(first)) + first, [1] * (size - len(second)) + second)
    return product(max(a, b) for a, b in pairs) * item_bytes(args[0])


def whole(steps, tensor, ctx):
    """The sum of a contiguous tensor like `tensor`."""
    reduce(steps, tensor, (0,), accumulator_bytes(dtype_of(tensor)), ctx, strides=[1],
           shape=[numel(tensor)])


def loss(place, temporaries, keeps):
    """A loss of elements, reduced (mean and sum). keeps: the result keeps the storage of all
    elements, of which it is the first; temporaries: tensors of all elements."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        size = broadcast_bytes(args)
        if int(argument(args, kwargs, place, "reduction", 1)) == 0:
            return steps.out(0)
        if keeps:
            steps.out(0, size)
            made = [steps.take(size) if temporaries else steps.take(item_bytes(args[0]))]
        else:
            made = [steps.take(size) for _ in range(temporaries)]
            steps.out(0)
        whole(steps, args[0], ctx)
        return steps.give(*reversed(made))
    return rule


def with_targets(place):
    """native/cuda/Loss.cu: targets with gaps are copied."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        for index in range(len(outs)):
            steps.out(index)
        return steps if contiguous(args[place]) else steps.spend(bytes_of(args[place]))
    return rule


def bce_logits(args, kwargs, outs, ctx):
    """With weights of the positive class, two tensors more."""
    weights, size, steps = argument(args, kwargs, 3, "pos_weight"), broadcast_bytes(args), Steps()
    if weights is None:
        if int(argument(args, kwargs, 4, "reduction", 1)):
            return loss(4, 2, False)(args, kwargs, outs, ctx)
        first = steps.take(size)
        return steps.out(0).give(first)
    first = steps.take(size)
    less, scaled = steps.take(bytes_of(weights)), steps.take(size)
    steps.give(less, scaled)
    second = steps.take(size)
    steps.out(0)
    if int(argument(args, kwargs, 4, "reduction", 1)):
        whole(steps, args[0], ctx)
    return steps.give(second, first)


def soft_margin_backward(args, kwargs, outs, ctx):
    size = broadcast_bytes(args[1:])
    steps = Steps()
    made = [steps.take(size) for _ in range(3)]
    return steps.give(made[1], made[0]).out(0).give(made[2])


def multi_margin(args, kwargs, outs, ctx):
    rows = int(args[0].shape[0]) if len(args[0].shape) > 1 else 0
    steps = Steps().out(0)
    return steps.spend(rows * item_bytes(args[0])) if argument(
        args, kwargs, 5, "reduction", 1) else steps


def multilabel_margin(args, kwargs, outs, ctx):
    rows = int(args[0].shape[0]) if len(args[0].shape) > 1 else 0
    steps = Steps().out(1)
    made = steps.take(rows * item_bytes(args[0])) if int(args[2]) else None
    return steps.out(0).give(made)


def ctc(backward):
    """Lengths and offsets of the batch; log_beta in the backward pass."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[1] if backward else args[0]
        batch = int(tensor.shape[1]) if len(tensor.shape) == 3 else 1
        steps = Steps()
        made = [steps.take(batch * 8) for _ in range(3)]
        if backward:
            beta = steps.take(bytes_of(args[6]))
            steps.out(0).give(beta)
        else:
            steps.out(1).out(0)
        return steps.give(made[1], made[0], made[2])
    return rule


def alike(first, second):
    """Both lie without gaps, in the same order of dimensions."""
    return dense(first) and dense(second) and [
        s for s, n in zip(strides_of(first), first.shape) if int(n) > 1] == [
        s for s, n in zip(strides_of(second), second.shape) if int(n) > 1]


def temporary(target, source, non_blocking):
    """Bytes of what copy_requires_temporaries of Copy.cu makes on the card, for copies between host and card. A kernel
    copies it, or fills it."""
    if on_card(target) == on_card(source):
        return 0
    same = dtype_of(target) == dtype_of(source)
    if same and list(target.shape) == list(source.shape) and alike(target, source):
        return 0
    if on_card(target):
        if non_blocking and not same:
            return numel(target) * item_bytes(source)
        return 0 if contiguous(target) else bytes_of(target)
    return 0 if contiguous(source) else numel(target) * item_bytes(source)


def transfer(steps, target, source, non_blocking):
    made = temporary(target, source, non_blocking)
    return steps.spend(made) if made else steps


def copy_(args, kwargs, outs, ctx):
    return transfer(Steps(), args[0], args[1], argument(args, kwargs, 2, "non_blocking", False))


def to_copy(args, kwargs, outs, ctx):
    return transfer(Steps().out(0), outs[0], args[0], kwargs.get("non_blocking", False))


def foreach_norm(args, kwargs, outs, ctx):
    """A partial norm for each chunk of the longest tensor, of every tensor."""
    tensors, kind = args[0], float(argument(args, kwargs, 1, "ord", 2))
    steps = Steps()
    if kind not in (1.0, 2.0, float("inf")):
        for index, tensor in enumerate(tensors):
            steps.out(index)
            reduce(steps, tensor, all_dims(tensor), accumulator_bytes(dtype_of(tensor)), ctx)
        return steps
    longest = max([ceil_div(numel(t), CHUNK) for t in tensors] or [0])
    item = 8 if dtype_of(tensors[0]) == "float64" else 4
    made = steps.take(len(tensors) * longest * item)
    for index in range(len(tensors)):
        steps.out(index)
    return steps.give(made)


def foreach_max(args, kwargs, outs, ctx):
    tensors = args[0]
    steps = Steps()
    for index in range(len(tensors)):
        steps.out(index)
    longest = max([ceil_div(numel(t), CHUNK) for t in tensors] or [0])
    return steps.spend(len(tensors) * longest * item_bytes(tensors[0]))


def roll(args, kwargs, outs, ctx):
    """Several dimensions are rolled one after another; an input that does not lie in order is copied first."""
    dims = argument(args, kwargs, 2, "dims", [])
    steps = Steps()
    made = [] if contiguous(args[0]) else [steps.take(bytes_of(args[0]))]
    for _ in range(len(dims) - 1):
        made.append(steps.take(bytes_of(args[0])))
    return steps.out(0).give(*reversed(made))


def chunk_cat(args, kwargs, outs, ctx):
    """Addresses, sizes and blocks of the pieces go to the card as one list of 64-bit numbers (pack_vecs)."""
    tensors, dim, chunks = args[0], int(args[1]), int(args[2])
    out = kwargs.get("out")
    types = {dtype_of(tensors[0]), dtype_of(tensors[0] if out is None else out)}
    if not all(dense(t) for t in tensors) or len(types) > 1 and types != {"bfloat16", "float32"}:
        return Steps()
    item, blocks = item_bytes(tensors[0] if out is None else out), 0
    for tensor in tensors:
        sizes = [int(n) for n in tensor.shape]
        place = wrap(dim, len(sizes))
        blocks += ceil_div(ceil_div(sizes[place], chunks) * product(sizes[place + 1:]) * item, PIECE_BYTES)
    steps = Steps()
    if out is None:
        steps.out(0)
    return steps.spend(8 * (6 * len(tensors) + 2 + blocks))


def split_copy(args, kwargs, outs, ctx):
    """split_with_sizes_copy.out: the same list, of 4 numbers a piece, one more, and its blocks."""
    tensor, splits, out = args[0], [int(n) for n in args[1]], kwargs.get("out") or ()
    same = all(dense(t) and dtype_of(t) == dtype_of(tensor) for t in out)
    if not same or not out or not dense(tensor):
        return Steps()
    shape = [int(n) for n in tensor.shape]
    dim = wrap(int(argument(args, kwargs, 2, "dim", 0)), len(shape))
    chunks, wide = product(shape[:dim]), strides_of(tensor)[dim] * item_bytes(tensor)
    threads = {"7.5": 1024, "8.6": 1536, "8.9": 1536, "12.0": 1536}.get(str(ctx.sm), 2048)
    blocks = sum(ceil_div(n * wide, PIECE_BYTES) for n in splits)
    factor = ceil_div(blocks * chunks, ctx.sms * threads // 128 * 2)
    rounds = ceil_div(factor, min(math.ceil(math.sqrt(factor)), chunks))
    blocks = sum(ceil_div(n * wide, PIECE_BYTES * rounds) for n in splits)
    return Steps().spend(8 * (4 * len(splits) + 1 + blocks))


def renorm(args, kwargs, outs, ctx):
    return Steps().out(0).spend(int(args[0].shape[int(args[2])]) * 4)


def euclidean(args, kwargs, outs, ctx):
    """The product of [-2 a, |a|^2, 1] and [b, 1, |b|^2]."""
    first, second = args[0], args[1]
    item, width = item_bytes(first), int(first.shape[-1])
    rows, others = numel(first) // width, numel(second) // width
    steps = Steps()
    squares = steps.take(bytes_of(first))
    norm = steps.take(rows * item)
    steps.give(squares)
    ones = steps.take(rows * item)
    squares = steps.take(bytes_of(second))
    norm2 = steps.take(others * item)
    steps.give(squares)
    ones2 = steps.take(others * item)
    scaled = steps.take(bytes_of(first))
    left = steps.take(rows * (width + 2) * item)
    steps.give(ones, norm, scaled)
    right = steps.take(others * (width + 2) * item)
    steps.give(norm2, ones2).out(0)
    keep_cublas(steps, ctx)
    return steps.give(right, left)


def cdist_backward(args, kwargs, outs, ctx):
    """A gradient for each pair of rows, summed afterwards."""
    grad, first = args[0], args[1]
    steps = Steps().out(0)
    made = steps.take(numel(grad) * int(first.shape[-1]) * item_bytes(first))
    return steps.give(made)


def varlen(args, kwargs, outs, ctx):
    steps = Steps().out(0).out(1)
    first = steps.take(16)
    steps.spend(8)
    return steps.out(2).give(first)


def varlen_backward(args, kwargs, outs, ctx):
    """softmax_d and dq_accum over all tokens, 128 more for each sequence."""
    from .kernels_attention import width_rounded
    query = args[1]
    tokens, heads, width = [int(s) for s in query.shape]
    sequences = numel(args[6]) - 1
    rows = (tokens + 128 * sequences) * heads * 4
    steps = Steps().out(0).out(1).out(2)
    return steps.spend(rows, rows * width_rounded(width))


def pow_of_number(args, kwargs, outs, ctx):
    """native/Pow.cpp: the base becomes a tensor on the card, of the widest type of its kind. In place (aten.pow_.Scalar,
    as of square_) the base is the tensor, and the exponent stays a number."""
    base = args[0]
    if not isinstance(base, (bool, int, float, complex)):
        return None
    size = 1 if isinstance(base, bool) else 16 if isinstance(base, complex) else 8
    return Steps().out(0) if base == 1 else Steps().out(0).spend(size)


RULES = {
    "aten.pow.Scalar": pow_of_number,
    "aten.abs.default": real_part(True), "aten.angle.default": real_part(False),
    "aten.isinf.default": isinf, "aten.normal.Tensor_Tensor": normal_of_tensors,
    "aten._efficientzerotensor.default": no_memory,
    "aten.native_dropout.default": order(1, 0), "aten.nll_loss2d_forward.default": order(1, 0),
    "aten.nll_loss_forward.default": with_targets(1), "aten.nll_loss_backward.default": with_targets(2),
    "aten._thnn_fused_lstm_cell.default": order(2, 0, 1),
    "aten._thnn_fused_gru_cell.default": order(1, 0),
    "aten.mse_loss.default": loss(2, 1, True), "aten.smooth_l1_loss.default": loss(2, 1, True),
    "aten.huber_loss.default": loss(2, 1, False),
    "aten.binary_cross_entropy.default": loss(3, 0, True),
    "aten.soft_margin_loss.default": loss(2, 0, True),
    "aten.binary_cross_entropy_with_logits.default": bce_logits,
    "aten.soft_margin_loss_backward.default": soft_margin_backward,
    "aten.multi_margin_loss.default": multi_margin,
    "aten.multilabel_margin_loss_forward.default": multilabel_margin,
    "aten._ctc_loss.default": ctc(False), "aten._ctc_loss_backward.default": ctc(True),
    "aten._ctc_loss.Tensor": ctc(False), "aten._ctc_loss_backward.Tensor": ctc(True),
    "aten.copy_.default": copy_, "aten._to_copy.default": to_copy,
    "aten._foreach_norm.Scalar": foreach_norm, "aten._foreach_max.default": foreach_max,
    "aten._chunk_cat.default": chunk_cat, "aten._chunk_cat.out": chunk_cat,
    "aten.split_with_sizes_copy.out": split_copy,
    "aten.roll.default": roll, "aten.renorm.default": renorm,
    "aten._euclidean_dist.default": euclidean, "aten._cdist_backward.default": cdist_backward,
    "torch_attn._varlen_attn.default": varlen,
    "torch_attn._varlen_attn_backward.default": varlen_backward,
}
