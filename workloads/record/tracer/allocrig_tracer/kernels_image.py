"""Pooling, resizing, sampling and patches: copies of inputs that a kernel cannot read in place.

Source: PyTorch 2.11, aten/src/ATen/native/cuda/: UpSampleNearest2d.cu, UpSampleBilinear2d.cu,
UpSampleBicubic2d.cu, AdaptiveMaxPooling2d.cu, DilatedMaxPool2d.cu, DilatedMaxPool3d.cu, AveragePool3d.cu, MaxUnpooling.cu,
ReflectionPad.cu, Im2Col.cu; aten/src/ATen/native/AffineGridGenerator.cpp.
"""
from .kernels_blas import keep_cublas
from .kernels_shape import (Steps, bytes_of, channels_last, contiguous, item_bytes, product, strides_of,
                            suggests_channels_last)


def resize(places, few=0):
    """The result and the inputs are copied if they are not contiguous. With `few`, a result of at least that many
    channels in channels_last is not, and the inputs are copied into that order."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps().out(0)
        out, fits = outs[0], contiguous
        if few and int(out.shape[1]) >= few and channels_last(out) and not channels_last_trivial(out):
            fits = channels_last
        made = [] if fits(out) else [steps.take(bytes_of(out))]
        made += [steps.take(bytes_of(args[p])) for p in places if not fits(args[p])]
        return steps.give(*reversed(made))
    return rule


def copied(places, first=False, also_out=False):
    """Contiguous copies of some arguments, after the outputs or (first) before them."""
    def rule(args, kwargs, outs, ctx):
        steps = Steps()
        if not first:
            for index in range(len(outs)):
                steps.out(index)
        made = [steps.take(bytes_of(args[p])) for p in places if not contiguous(args[p])]
        if also_out and not contiguous(outs[0]):
            made.append(steps.take(bytes_of(outs[0])))
        if first:
            for index in range(len(outs)):
                steps.out(index)
        return steps.give(*reversed(made))
    return rule


def adaptive_max(args, kwargs, outs, ctx):
    steps = Steps().out(0).out(1)
    made = [steps.take(bytes_of(t)) for t in (outs[0], outs[1], args[0]) if not contiguous(t)]
    return steps.give(*reversed(made))


def in_order_of(tensor, values):
    """The bytes of copies of those values that do not lie in the memory format that a tensor suggests."""
    last = suggests_channels_last([int(s) for s in tensor.shape], strides_of(tensor))
    return [bytes_of(v) for v in values if not (lies_last(v) if last else contiguous(v))]


def max_pool_picture(args, kwargs, outs, ctx):
    """DilatedMaxPool2d.cu: an input between other elements is copied into its own order."""
    steps = Steps().out(0).out(1)
    made = [steps.take(size) for size in in_order_of(args[0], args[:1])]
    return steps.give(*reversed(made))


def max_pool_picture_backward(args, kwargs, outs, ctx):
    """The input and then its gradient; the places of the largest values are read as they lie."""
    steps = Steps().out(0)
    made = [steps.take(size) for size in in_order_of(args[1], (args[1], args[0]))]
    return steps.give(*reversed(made))


def max_pool_volume_backward(args, kwargs, outs, ctx):
    """The gradient is copied into the order of the input (channels_last or plain)."""
    grad, tensor, places = args[0], args[1], args[-1]
    steps = Steps().out(0)
    made = []
    for value in (grad, places):
        if hasattr(value, "stride"):
            if not (lies_last(value) if channels_last(tensor) else contiguous(value)):
                made.append(steps.take(bytes_of(value)))
    return steps.give(*reversed(made))


def max_pool_volume(args, kwargs, outs, ctx):
    """DilatedMaxPool3d.cu: the input is copied into its own order."""
    fits = channels_last(args[0]) or contiguous(args[0])
    steps = Steps().out(0).out(1)
    return steps if fits else steps.give(steps.take(bytes_of(args[0])))


def lies_last(tensor):
    return channels_last(tensor) or contiguous(tensor) and channels_last_trivial(tensor)


def channels_last_trivial(tensor):
    """Contiguous in both orders: one channel, or one pixel."""
    shape = [int(s) for s in tensor.shape]
    return len(shape) >= 3 and (shape[1] == 1 or product(shape[2:]) == 1)


def pool_backward(args, kwargs, outs, ctx):
    """AveragePool2d.cu: input and gradient in the layout of the input."""
    steps = Steps().out(0)
    last = channels_last(args[1]) and not channels_last_trivial(args[1])
    return steps.give(*[steps.take(bytes_of(t)) for t in (args[1], args[0]) if not (channels_last(t) if last else contiguous(t))][::-1])


def im2col(args, kwargs, outs, ctx):
    """The input is copied; once more if it is not contiguous."""
    steps = Steps()
    made = [steps.take(bytes_of(args[0]))]
    if not contiguous(args[0]):
        made.append(steps.take(bytes_of(args[0])))
    return steps.out(0).give(*made)


def col2im(args, kwargs, outs, ctx):
    """The result has the storage of a tensor like the input, if that is larger."""
    return Steps().out(0, max(bytes_of(args[0]), bytes_of(outs[0])))


def unfold_backward(args, kwargs, outs, ctx):
    """The positions along the dimension."""
    shape, dim = args[1], int(args[2])
    return Steps().out(0).spend(int(shape[dim]) * 8)


def affine_grid(args, kwargs, outs, ctx):
    """The base grid, its columns and rows, then a product."""
    theta, size = args[0], [int(s) for s in args[1]]
    item = item_bytes(theta)
    dims = size[2:]
    steps = Steps()
    grid = steps.take(size[0] * product(dims) * (len(dims) + 1) * item)
    for length in reversed(dims):
        line = [steps.take(length * item), steps.take(length * item), steps.take(length * item)]
        steps.give(*line)
    steps.out(0)
    keep_cublas(steps, ctx)
    return steps.give(grid)


def images_at_once(tensor):
    """get_greatest_divisor_below_bound of torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu (0.26)."""
    batch = int(tensor.shape[0])
    return next((n for n in range(min(batch, 32), 0, -1) if batch % n == 0), 1)


def deformable(args, kwargs, outs, ctx):
    """Two sums in plain order and the columns of up to 32 images, then the sum with the bias."""
    tensor, weight, out = args[0], args[1], outs[0]
    steps, at_once = Steps(), images_at_once(tensor)
    for value in (tensor, args[2], weight, args[3], args[4]):
        if not contiguous(value):
            steps.take(bytes_of(value))
    steps.take(bytes_of(out))
    steps.take(bytes_of(out))
    steps.take(int(tensor.shape[1]) * product(weight.shape[2:]) * at_once * product(out.shape[2:]) * item_bytes(out))
    keep_cublas(steps, ctx)
    return steps.out(0)


def deformable_backward(args, kwargs, outs, ctx):
    """Columns and the gradient of the output in another order, for the inputs and again for the weight."""
    grad, tensor, weight = args[0], args[1], args[2]
    steps, at_once = Steps(), images_at_once(tensor)
    for value in args[:6]:
        if not contiguous(value):
            steps.take(bytes_of(value))
    columns = int(tensor.shape[1]) * product(weight.shape[2:]) * at_once * product(grad.shape[2:]) * item_bytes(grad)
    steps.out(0).out(2).out(3)
    first, block = steps.take(columns), steps.take(bytes_of(grad) * at_once // int(tensor.shape[0]))
    keep_cublas(steps, ctx)
    steps.give(block, first).out(1)
    second = [steps.take(bytes_of(grad)), steps.take(columns)]
    steps.give(*reversed(second))
    steps.take(bytes_of(outs[4]))
    steps.take(bytes_of(outs[4]))
    return steps.out(4)


RULES = {
    "torchvision.deform_conv2d.default": deformable,
    "torchvision._deform_conv2d_backward.default": deformable_backward,
    "aten.upsample_nearest2d.default": resize((0,), 4),
    "aten.upsample_nearest2d_backward.default": resize((0,), 4),
    "aten._upsample_nearest_exact2d.default": resize((0,), 4),
    "aten._upsample_nearest_exact2d_backward.default": resize((0,), 4),
    "aten.upsample_bilinear2d_backward.default": resize((0,), 4),
    "aten.upsample_bicubic2d_backward.default": copied((0,)),
    "aten._upsample_bilinear2d_aa.default": resize((0,)),
    "aten._upsample_bicubic2d_aa.default": resize((0,)),
    "aten._upsample_bilinear2d_aa_backward.default": copied((0,)),
    "aten._upsample_bicubic2d_aa_backward.default": copied((0,)),
    "aten.adaptive_max_pool2d.default": adaptive_max,
    "aten.adaptive_max_pool2d_backward.default": copied((0, 2), also_out=True),
    "aten.max_pool2d_with_indices.default": max_pool_picture,
    "aten.max_pool2d_with_indices_backward.default": max_pool_picture_backward,
    "aten.max_pool3d_with_indices.default": max_pool_volume,
    "aten.max_pool3d_with_indices_backward.default": max_pool_volume_backward,
    "aten.avg_pool3d.default": copied((0,)), "aten.avg_pool3d_backward.default": copied((0,)),
    "aten.max_unpool2d.default": copied((0, 1), first=True),
    "aten.reflection_pad1d.default": copied((0,)), "aten.reflection_pad2d.default": copied((0,)),
    "aten.avg_pool2d_backward.default": pool_backward,
    "aten.col2im.default": col2im, "aten.im2col.default": im2col, "aten.unfold_backward.default": unfold_backward,
    "aten.affine_grid_generator.default": affine_grid,
}
