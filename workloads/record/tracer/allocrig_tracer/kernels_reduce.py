"""Reductions: the buffers of a reduction across thread blocks.

The launch configuration is that of at::native::setReduceConfig (aten/src/ATen/native/cuda/
Reduce.cuh, PyTorch 2.11): a reduction that is split over several blocks of one output takes a
buffer (one accumulator per block and output) and a semaphore (4 bytes per block of the grid's first
dimension). The order of the dimensions is that of TensorIterator (aten/src/ATen/TensorIterator.cpp:
reorder_dimensions, coalesce_dimensions). Iterators beyond 2^31 bytes are split as
TensorIterator::with_32bit_indexing splits them.
"""
from .kernels_shape import (HALF, Steps, argument, bytes_of, ceil_div, contiguous, dtype_of, item_bytes, numel,
                            product, strides_of, wrap)

THREADS = 512            # MAX_NUM_THREADS of Reduce.cuh
THREADS_OF_SM = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536}
LIMIT_32 = 2 ** 31 - 1


def threads_of_sm(ctx):
    """Resident threads of a multiprocessor, by compute capability (CUDA C++ Programming Guide)."""
    sm = float(getattr(ctx, "sm", 9.0))
    return THREADS_OF_SM.get((int(sm), int(round(sm * 10)) % 10), 2048)


def last_power(value):
    return 1 << (int(value).bit_length() - 1) if value >= 1 else 1


class Iterator:
    """Shape and byte strides of (output, input), fastest dimension first, coalesced."""

    def __init__(self, shape, strides, dims, item, out_item=4):
        out, expected = [0] * len(shape), out_item
        for dim in range(len(shape) - 1, -1, -1):
            if dim not in dims:
                out[dim] = expected
                expected *= shape[dim]
        source = [s * item for s in strides]
        self.item = item
        order = sort_dimensions(shape, (out, source))
        self.shape = [shape[d] for d in order]
        self.out = [out[d] for d in order]
        self.source = [source[d] for d in order]
        self.coalesce()

    def coalesce(self):
        shape, out, source = [], [], []
        for size, a, b in zip(self.shape, self.out, self.source):
            if shape:
                if size == 1 or shape[-1] == 1 or (shape[-1] * out[-1] == a and
                                                   shape[-1] * source[-1] == b):
                    if shape[-1] == 1:
                        out[-1], source[-1] = a, b
                    shape[-1] *= size
                    continue
            shape.append(size)
            out.append(a)
            source.append(b)
        self.shape, self.out, self.source = shape, out, source

    def reduced(self):
        return sum(1 for stride in self.out if stride == 0)

    def outputs(self):
        return product(s for s, stride in zip(self.shape, self.out) if stride != 0)

    def small(self):
        """TensorIterator::can_use_32bit_indexing."""
        if product(self.shape) > LIMIT_32:
            return False
        for strides in (self.out, self.source):
            if 1 + sum((s - 1) * t for s, t in zip(self.shape, strides)) > LIMIT_32:
                return False
        return True

    def parts(self):
        """TensorIterator::with_32bit_indexing: halves of the longest dimension until all fit."""
        if self.small():
            return [self]
        extents = [max((s - 1) * a, (s - 1) * b) for s, a, b in zip(self.shape, self.out,
                                                                    self.source)]
        dim = max(range(len(extents)), key=lambda d: extents[d])
        found = []
        half = self.shape[dim] // 2
        for size in (half, self.shape[dim] - half):
            part = object.__new__(Iterator)
            part.item, part.out, part.source = self.item, list(self.out), list(self.source)
            part.shape = list(self.shape)
            part.shape[dim] = size
            found += part.parts()
        return found


def sort_dimensions(shape, operands, reduction=True):
    """TensorIteratorBase::reorder_dimensions, fastest first; of a reduction operands[0] is the output."""
    order = list(range(len(shape) - 1, -1, -1))

    def compare(first, second):
        for number, strides in enumerate(operands):
            a, b = strides[first], strides[second]
            if reduction and number == 0 and (a == 0) != (b == 0):
                return 1 if b == 0 else -1
            if a == 0 or b == 0:
                continue
            if a != b:
                return -1 if a < b else 1
            if shape[first] > shape[second]:
                return 1
        return 0

    for i in range(1, len(order)):
        second = i
        for first in range(i - 1, -1, -1):
            result = compare(order[first], order[second])
            if result > 0:
                order[first], order[second] = order[second], order[first]
                second = first
            elif result < 0:
                break
    return order


def output_vector(it, reduced):
    """get_output_vec_size: how many outputs one thread computes."""
    size = 4
    values = [it.shape[reduced]] + [s // it.item for d, s in enumerate(it.source) if d != reduced]
    for value in values:
        while value % size:
            size //= 2
    return size


def global_buffers(it, accumulator, ctx, vt0=4, limit=THREADS):
    """(bytes of the buffer, bytes of the semaphores) of one launch; (0, 0) without a split."""
    outputs = it.outputs()
    inputs = product(it.shape) // max(outputs, 1)
    reduced = it.reduced()
    if not it.shape:
        fastest, dim0, dim1, stride = True, 1, 1, it.item
    else:
        fastest = reduced == len(it.shape) or (reduced and it.source[0] < it.source[reduced])
        if fastest:
            dim0, dim1, stride = inputs, outputs, it.source[0]
        else:
            dim0, dim1, stride = outputs, inputs, it.source[reduced]
    wide = 1
    if stride == it.item:
        if fastest and dim0 > 128 and len(it.shape) == 1:
            dim0 //= vt0
        elif not fastest:
            wide = output_vector(it, reduced)
            dim0 //= wide
    threads = limit // wide
    p0 = last_power(dim0) if dim0 < threads else threads
    p1 = last_power(dim1) if dim1 < threads else threads
    width = min(p0, 32)
    height = min(p1, threads // width)
    width = min(p0, threads // height)
    step_in, step_out = 1, 1
    if fastest:
        step_in *= width
    else:
        step_out *= width
    split = ceil_div(inputs, step_in) >= min(height * 16, 256)
    if split:
        step_in *= height
    else:
        step_out *= height
    values = ceil_div(inputs, step_in)
    target = ctx.sms * (threads_of_sm(ctx) // (width * height))
    grid = ceil_div(outputs // wide, step_out)
    if not split or values < 256 or grid > target:
        return 0, 0
    blocks = max(min(ceil_div(target, grid), ceil_div(values, 16)), ceil_div(values, 256))
    if blocks <= 1:
        return 0, 0
    size = accumulator * outputs * blocks
    if not fastest:
        size *= width * wide
    return size, 4 * grid


def reduce(steps, tensor, dims, accumulator, ctx, dtype=None, strides=None, vt0=4, shape=None,
           out_item=8):
    """The requests of one gpu_reduce_kernel over dims of tensor (read as dtype). If the iterator is
    split, an accumulator that is larger than an output (out_item bytes) needs a buffer."""
    shape = [int(s) for s in (tensor.shape if shape is None else shape)]
    item = item_bytes(tensor if dtype is None else dtype)
    dims = {wrap(int(d), len(shape)) for d in dims} if shape else set()
    if product(shape) == 0:
        return
    strides = strides_of(tensor) if strides is None else strides
    limit = THREADS // 2 if dtype_of(tensor if dtype is None else dtype) == "complex128" else THREADS
    it = Iterator(shape, strides, dims, item)
    parts = it.parts()
    buffer = None
    if len(parts) > 1 and accumulator > out_item:
        buffer = steps.take(it.outputs() * accumulator)
    for part in parts:
        steps.spend(*global_buffers(part, accumulator, ctx, vt0, limit))
    steps.give(buffer)


def all_dims(tensor):
    return range(len(tensor.shape))


def chosen(tensor, dim):
    """The dimensions of an argument that is a number, a list or absent."""
    if dim is None or isinstance(dim, (list, tuple)) and not dim:
        return all_dims(tensor)
    return dim if isinstance(dim, (list, tuple)) else (dim,)


def accumulator_bytes(name):
    """Bytes of at::acc_type on the card."""
    return {"float16": 4, "bfloat16": 4, "float32": 4, "float64": 8, "complex64": 8,
            "complex128": 16}.get(name, 8)


def plain_strides(shape):
    found, expected = [], 1
    for size in reversed(shape):
        found.insert(0, expected)
        expected *= max(1, int(size))
    return found


def cast(steps, tensor, dtype):
    """tensor.to(dtype) of a rule: the temporary, and the strides of its result."""
    from .kernels_shape import dense
    number = steps.take(numel(tensor) * item_bytes(dtype))
    return number, strides_of(tensor) if dense(tensor) else plain_strides(tensor.shape)


def sum_like(place_dim, place_dtype):
    """sum, mean, nansum, prod: the sum is computed in the output's dtype; inputs of another dtype
    are converted first, except float16 and bfloat16 to float32 (make_reduction_from_out_ty)."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        dim = argument(args, kwargs, place_dim, "dim") if place_dim else None
        out, name = dtype_of(outs[0]), dtype_of(tensor)
        steps = Steps().out(0)
        number, strides, dtype = None, None, name
        if name != out and not (name in HALF and out == "float32"):
            number, strides = cast(steps, tensor, out)
            dtype = out
        reduce(steps, tensor, chosen(tensor, dim), accumulator_bytes(out), ctx, dtype, strides,
               out_item=item_bytes(out))
        return steps.give(number)
    return rule


def cell_backward(gates):
    """native/cuda/RNN.cu: the gradients of the biases, behind the others, are sums of those of the first gates."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        for index, out in enumerate(outs):
            if out is not None:
                steps.out(index)
                if index > gates:
                    name = dtype_of(out)
                    reduce(steps, outs[0], (0,), accumulator_bytes(name), ctx, name, out_item=item_bytes(name))
        return steps
    return rule


def with_bytes(accumulator, place_dim=1, vt0=4, outputs=1, in_output=False):
    """A reduction whose accumulator has the bytes that accumulator(dtype) says; in_output: it can be
    kept in the output."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        dim = argument(args, kwargs, place_dim, "dim") if place_dim else None
        steps = Steps()
        for index in range(outputs):
            steps.out(index)
        reduce(steps, tensor, chosen(tensor, dim), accumulator(dtype_of(tensor)), ctx, vt0=vt0,
               out_item=16 if in_output else item_bytes(outs[0]))
        return steps
    return rule


def extreme(args, kwargs, outs, ctx):
    """ReduceAllOps.cpp: of elements in plain order."""
    steps = Steps().out(0)
    copy = None if contiguous(args[0]) else steps.take(bytes_of(args[0]))
    reduce(steps, args[0], all_dims(args[0]), item_bytes(args[0]), ctx, strides=plain_strides(args[0].shape), out_item=item_bytes(outs[0]))
    return steps.give(copy)


def truth(place_dim):
    """any and all: of a single element, its value as bool is a tensor of its own."""
    several = with_bytes(itself, place_dim, in_output=True)

    def rule(args, kwargs, outs, ctx):
        if numel(args[0]) == 1 and dtype_of(args[0]) not in ("bool", "uint8"):
            return Steps().out(0).spend(1)
        return several(args, kwargs, outs, ctx)
    return rule


def count_nonzero(args, kwargs, outs, ctx):
    """(self != 0).sum(dim): a boolean tensor, then a sum of it as int64."""
    tensor = args[0]
    dim = argument(args, kwargs, 1, "dim")
    steps = Steps()
    mask = None
    if dtype_of(tensor) != "bool":
        mask = steps.take(numel(tensor))
    steps.out(0)
    wide, strides = cast(steps, tensor, "int64")
    reduce(steps, tensor, chosen(tensor, dim), 8, ctx, "int64", strides)
    return steps.give(wide, mask)


def aminmax(args, kwargs, outs, ctx):
    steps = Steps().out(0).out(1)
    reduce(steps, args[0], chosen(args[0], argument(args, kwargs, None, "dim")),
           two(dtype_of(args[0])), ctx)
    return steps


def observed(args, kwargs, outs, ctx):
    """quantized/cuda/FusedObsFakeQuant.cu: least and largest of all, or of each row, then the result and its mask."""
    tensor, rows = args[0], argument(args, kwargs, 11, "per_row_fake_quant")
    axis = wrap(args[10], len(tensor.shape))
    count = tensor.shape[axis] if rows else 1
    steps = Steps()
    copy = None if contiguous(tensor) else steps.take(bytes_of(tensor))
    least, most = steps.take(4 * count), steps.take(4 * count)
    dims = [i for i in range(len(tensor.shape)) if i != axis] if rows else all_dims(tensor)
    reduce(steps, tensor, dims, two(dtype_of(tensor)), ctx, dtype_of(tensor), plain_strides(tensor.shape))
    return steps.give(most, least).out(0).out(1).give(copy)


def equal(args, kwargs, outs, ctx):
    """eq, all, and the value read back."""
    steps = Steps()
    if args[0] is args[1] or not numel(args[0]):
        return steps
    same, every = steps.take(numel(args[0])), steps.take(1)
    reduce(steps, args[0], all_dims(args[0]), 1, ctx, "bool", plain_strides(args[0].shape))
    return steps.give(every, same)


def dist(args, kwargs, outs, ctx):
    """The norm of the difference."""
    steps = Steps()
    difference = steps.take(bytes_of(args[0]))
    steps.out(0)
    reduce(steps, args[0], all_dims(args[0]), norm_bytes(dtype_of(args[0])), ctx)
    return steps.give(difference)


def itself(name):
    return item_bytes(name)


def pair(name):
    """A value and an index of 8 bytes: the larger alignment rounds."""
    return 2 * max(8, item_bytes(name))


def welford(name):
    """WelfordData<acc, int32 or float count>: mean, m2, n and nf."""
    return 32 if name == "float64" else 16


def norm_bytes(name):
    return 8 if name in ("float64", "complex128") else 4


def two(name):
    return 2 * item_bytes(name)


RULES = {
    "aten.sum.default": sum_like(None, 1), "aten.sum.dim_IntList": sum_like(1, 3),
    "aten.mean.default": sum_like(None, 1), "aten.mean.dim": sum_like(1, 3),
    "aten._thnn_fused_gru_cell_backward.default": cell_backward(2),
    "aten._thnn_fused_lstm_cell_backward_impl.default": cell_backward(1),
    "aten.nansum.default": sum_like(1, 3), "aten.prod.default": sum_like(None, 1),
    "aten.prod.dim_int": sum_like(1, 3),
    "aten.max.default": extreme, "aten.min.default": extreme,
    "aten.amax.default": with_bytes(itself), "aten.amin.default": with_bytes(itself),
    "aten.any.default": truth(None), "aten.any.dim": truth(1), "aten.any.dims": truth(1),
    "aten.all.default": truth(None), "aten.all.dim": truth(1), "aten.all.dims": truth(1),
    "aten.argmax.default": with_bytes(pair), "aten.argmin.default": with_bytes(pair),
    "aten.max.dim": with_bytes(pair, 1, 4, 2), "aten.min.dim": with_bytes(pair, 1, 4, 2),
    "aten.var.correction": with_bytes(welford, 1, 2),
    "aten.std.correction": with_bytes(welford, 1, 2),
    "aten.var_mean.correction": with_bytes(welford, 1, 2, 2),
    "aten.std_mean.correction": with_bytes(welford, 1, 2, 2),
    "aten.aminmax.default": aminmax, "aten.equal.default": equal, "aten.dist.default": dist,
    "aten._fused_moving_avg_obs_fq_helper.default": observed,
    "aten.linalg_vector_norm.default": with_bytes(norm_bytes, 2),
    "aten.norm.Scalar": with_bytes(norm_bytes, None),
    "aten.norm.ScalarOpt_dim": with_bytes(norm_bytes, 2),
    "aten.count_nonzero.default": count_nonzero,
    "aten.count_nonzero.dim_IntList": count_nonzero,
}
