"""Shapes and strides of the outputs of cuDNN's operators, and of derivatives that decompositions lay out otherwise, for
FakeTensor.

PyTorch's own shape functions ask C++, which takes the tensors for `meta`: it would choose no kernel of cuDNN, and with
it no channels-last output. Recurrent networks have no shape function for the backward pass, and none for the reserve.
"""

import torch
from torch._decomp import meta_table
from torch._meta_registrations import calc_conv_nd_return_shape
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensor

from . import kernels_cudnn
from .cudnn_library import packed_strides

aten = torch.ops.aten


def view(tensor):
    """Its sizes and strides as they are now: what is asked of them adds no guard to a compiled program."""
    shape, strides = ([n.node.hint if isinstance(n, torch.SymInt) else n for n in ns] for ns in (tensor.shape, tensor.stride()))
    return kernels_cudnn.View(shape, strides, tensor.element_size())


class Maker:
    """Makes fake tensors like a given one."""

    def __init__(self, mode, like):
        self.mode, self.like = mode, like

    def __call__(self, shape, last=False, dtype=None, strides=None):
        shape = [n if isinstance(n, torch.SymInt) else int(n) for n in shape]  # a size of a compiled program can vary
        last = last and len(shape) > 2  # sequences, too, if a filter lies so
        with torch._C._DisableTorchDispatch():
            elem = torch.empty_strided(shape, strides or packed_strides(shape, last), dtype=dtype or self.like.dtype,
                                       device="meta")
        return FakeTensor(self.mode, elem, self.like.fake_device)


def on_card(function, plain):
    """A function for tensors on the card; others take PyTorch's own way."""

    def serve(mode, func, *args, **kwargs):
        first = args[0]
        if not isinstance(first, FakeTensor) or first.fake_device.type != "cuda":
            if plain is not None:
                return plain(mode, func, *args, **kwargs)
            return NotImplemented
        return function(Maker(mode, first), *args, **kwargs)

    return serve


def kind(x, w, stride, padding, dilation, transposed, output_padding, groups):
    """(the convolution, whether its outputs are channels last)."""
    c = kernels_cudnn.Convolution(view(x), view(w), stride, padding, dilation, transposed, output_padding, groups,
                                  kernels_cudnn.NAMES.get(x.dtype))  # fmt: skip
    return c, c.last and c.backend(None) == "cudnn"


def convolution(make, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    shape = calc_conv_nd_return_shape(x, w, list(stride), list(padding), list(dilation), transposed, groups,
                                      list(output_padding) if transposed else None)  # fmt: skip
    return make(shape, kind(x, w, stride, padding, dilation, transposed, output_padding, groups)[1])


def convolution_backward(make, gradient, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding,
                         groups, output_mask):  # fmt: skip
    _, last = kind(x, w, stride, padding, dilation, transposed, output_padding, groups)
    return (
        make(x.shape, last) if output_mask[0] else None,
        make(w.shape, last) if output_mask[1] else None,
        make([gradient.shape[1]]) if output_mask[2] else None,
    )


def batch_norm(make, x, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon):
    last = view(x).suggests_last()
    saved = [x.shape[1] if training else 0]
    return make(x.shape, last), make(saved, dtype=weight.dtype), make(saved, dtype=weight.dtype), make(
        [0], dtype=torch.uint8)


def batch_norm_backward(make, x, gradient, weight, *rest):
    last = view(x).suggests_last()
    return make(x.shape, last), make(weight.shape, dtype=weight.dtype), make(weight.shape, dtype=weight.dtype)


def rnn(make, input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers, batch_first,
        dropout, train, bidirectional, batch_sizes, dropout_state):  # fmt: skip
    directions, out = 2 if bidirectional else 1, proj_size or hidden_size
    batch_first = batch_first and not batch_sizes
    if batch_sizes:
        batch, shape = batch_sizes[0], (input.shape[0], out * directions)
    else:
        batch, steps = (input.shape[0], input.shape[1]) if batch_first else (input.shape[1], input.shape[0])
        shape = (steps, batch, out * directions)
    output = make(shape)
    hy = make((num_layers * directions, batch, out))
    cy = make((num_layers * directions, batch, hidden_size) if cx is not None else (0,))
    arguments = (input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers,
                 batch_first, dropout, train, bidirectional, batch_sizes, dropout_state)  # fmt: skip
    reserve = make((kernels_cudnn.reserve_bytes(arguments) if train else 0,), dtype=torch.uint8)
    if weight_buf is None:
        weight_buf = make((kernels_cudnn.sizes.rnn_weights(
            mode, input.shape[-1], hidden_size, proj_size, num_layers, bidirectional),))  # fmt: skip
    return output.transpose(0, 1) if batch_first else output, hy, cy, reserve, weight_buf


def rnn_backward(make, input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy, grad_cy, mode,
                 hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes,
                 dropout_state, reserve, output_mask):  # fmt: skip
    if batch_first and not batch_sizes:  # computed with the steps first, as the output
        dx = make((input.shape[1], input.shape[0], input.shape[2])).transpose(0, 1)
    else:
        dx = make(input.shape)
    dhx = make(hx.shape)
    dcx = make(cx.shape) if cx is not None else None
    if not output_mask[3]:
        return dx, dhx, dcx, []
    if weight_stride0 < 4:  # without biases each gradient is a copy out of the buffer
        return dx, dhx, dcx, [make(w.shape) for w in weight]
    flat, gradients, at = make((sum(w.numel() for w in weight),)), [], 0
    for w in weight:
        gradients.append(flat.narrow(0, at, w.numel()).view(w.shape))
        at += w.numel()
    return dx, dhx, dcx, gradients


def elementwise(make, gradient, *rest):
    """TensorIterator: dimensions lie as those of the operands; PyTorch's functions in Python lose that."""
    operands = [gradient, *(t for t in rest if isinstance(t, FakeTensor))]
    strides = torch._prims_common.compute_elementwise_output_strides(*operands)
    return make(gradient.shape, strides=strides)


def with_number(func, args):
    """Whether C++ makes a tensor without dimensions of a number, so that the operands have not one shape (no fast_set_up)."""
    wrapped = (a.type.kind() == "TensorType" and isinstance(v, (bool, int, float)) for a, v in zip(func._schema.arguments, args))
    scalar = func._overloadname in ("Scalar", "Scalar_mode") and func.overloadpacket not in (aten.lerp, aten.masked_fill, aten.pow)
    return scalar or any(wrapped)


def of_single_pixels(fake, func, fakes, args, out):
    """Images of one position are in plain order and in channels last at once. TensorIterator takes plain order for an
    elementwise operator (fast_set_up), FakeTensor the other; which it is decides if a convolution copies a gradient."""
    if torch.Tag.pointwise not in func.tags and func not in NOT_TAGGED:
        return out
    if not isinstance(out, FakeTensor) or out.dim() not in (4, 5):
        return out
    plain = torch.Size(out.shape[2:]).numel() == 1 and not any(t is out for t in fakes)
    if plain and func not in KEEP_STRIDES and all(t.is_contiguous() and t.shape == out.shape for t in fakes):
        return out if with_number(func, args) else Maker(fake, out)(out.shape)
    return out


KEEP_STRIDES = aten.clone.default, aten.hardtanh.default, aten.nan_to_num.default  # their results are made by empty_like
NOT_TAGGED = {aten.hardswish.default, aten.hardswish_backward.default, aten.hardsigmoid_backward.default,
              aten.leaky_relu.default, aten.leaky_relu_backward.default}  # elementwise, but not said to be
VIEWS = aten.view.default, aten._unsafe_view.default, aten._reshape_alias.default


def of_view(fake, func, args, out):
    """The strides of a view as C++ has them: FakeTensor gives others to dimensions of one element, and whether a product
    folds its dimensions depends on them."""
    if func not in VIEWS or not isinstance(out, FakeTensor) or 1 not in (*args[0].shape, *out.shape) or not out.numel():
        return out
    with torch._C._DisableTorchDispatch():
        strides = torch.empty_strided(args[0].shape, args[0].stride(), device="meta").view(out.shape).stride()
    if strides == out.stride():
        return out
    with fake:
        return aten.as_strided.default(args[0], out.shape, strides, args[0].storage_offset())


def log_softmax_backward(make, gradient, output, dim, dtype):
    return make(gradient.shape, dtype=dtype)


FUNCTIONS = {
    aten.elu_backward.default: elementwise,
    aten.softplus_backward.default: elementwise,
    aten.hardtanh_backward.default: elementwise,
    aten.hardswish_backward.default: elementwise,
    aten.hardsigmoid_backward.default: elementwise,
    aten._log_softmax_backward_data.default: log_softmax_backward,
    aten.convolution.default: convolution,
    aten.convolution_backward.default: convolution_backward,
    aten.cudnn_batch_norm.default: batch_norm,
    aten.cudnn_batch_norm_backward.default: batch_norm_backward,
    aten._cudnn_rnn.default: rnn,
    aten._cudnn_rnn_backward.default: rnn_backward,
}


def install():
    """Puts them in front of PyTorch's own, once."""
    known = fake_impls.op_implementations_dict
    for func, function in FUNCTIONS.items():
        if getattr(known.get(func), "of_card", None) is None:
            known[func] = on_card(function, known.get(func))
            known[func].of_card = True
            meta_table.setdefault(func, function)  # else FakeTensor prefers a decomposition
