"""Shapes of operators for which PyTorch has no shape function.

An operator that is not here either ends the program with a sentence that names it: the trace up to there is kept.
"""

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedOperatorException,
)

from . import values

aten = torch.ops.aten
MISSING = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException, NotImplementedError)


def like(number=0):
    """One output of the shape of an argument."""
    return lambda make, *args, **kwargs: make(args[number].shape, args[number].dtype)


def two_like(second):
    """Two outputs of the shape of the first argument; the second has another type."""
    return lambda make, *args, **kwargs: (make(args[0].shape, args[0].dtype), make(args[0].shape, second or args[0].dtype))


def ctc_loss(make, log_probs, targets, input_lengths, target_lengths, *rest):
    """native/cuda/LossCTC.cu: log_alpha has two columns for each target, and one."""
    time, batch = log_probs.shape[:2]
    lengths = values.value_of(target_lengths) if isinstance(target_lengths, torch.Tensor) else torch.tensor(target_lengths)
    longest = int(lengths.max()) if lengths is not None and lengths.numel() else targets.shape[-1]
    return make((batch,), log_probs.dtype), make((batch, time, 2 * longest + 1), log_probs.dtype)


def geqrf(make, a):
    return make(a.shape, a.dtype), make((*a.shape[:-2], min(a.shape[-2:])), a.dtype)


def product(add):
    """mm, bmm, addmm and baddbmm with the type of the result."""

    def shape(make, *args, **kwargs):
        a, b = (args[1], args[2]) if add else (args[0], args[1])
        dtype = args[3] if add else args[2]
        return make((*a.shape[:-1], b.shape[-1]), dtype)

    return shape


def lstsq(make, a, b, *rest, **options):
    """native/BatchLinearAlgebra.cpp, with the driver gels: of the ranks and singular values there are none."""
    rows, columns = a.shape[-2:]
    vector = b.dim() == 1 or b.dim() == a.dim() - 1 and b.shape == a.shape[:-1]
    wide = () if vector else b.shape[-1:]
    solution = make((*a.shape[:-2], columns, *wide), a.dtype)
    residuals = make((*a.shape[:-2], *(wide or (1,))) if rows > columns else (0,), a.dtype.to_real())
    return solution, residuals, make((0,), torch.int64), make((0,), a.dtype.to_real())


def gru_cell(make, gates, hidden_gates, state, *biases):
    """native/cuda/RNN.cu: the workspace of backward has five parts of the state's size."""
    return make(state.shape, state.dtype), make((state.shape[0], 5 * state.shape[1]), state.dtype)


def gru_cell_backward(make, grad, workspace, biased):
    rows, columns = grad.shape
    sums = [make((3 * columns,), grad.dtype) if biased else None for _ in range(2)]
    return make((rows, 3 * columns), grad.dtype), make((rows, 3 * columns), grad.dtype), make(grad.shape, grad.dtype), *sums


SHAPES = {
    "aten::_thnn_fused_gru_cell": gru_cell,
    "aten::_thnn_fused_gru_cell_backward": gru_cell_backward,
    "aten::_ctc_loss": ctc_loss,
    "aten::_ctc_loss.Tensor": ctc_loss,
    "aten::_ctc_loss_backward": like(1),
    "aten::_ctc_loss_backward.Tensor": like(1),
    "aten::_standard_gamma": like(),
    "aten::_standard_gamma_grad": like(),
    "aten::_sample_dirichlet": like(),
    "aten::_dirichlet_grad": like(),
    "aten::poisson": like(),
    "aten::binomial": like(),
    "aten::multi_margin_loss_backward": like(1),
    "aten::multilabel_margin_loss_backward": like(1),
    "aten::mse_loss_backward": like(1),  # Loss.cpp: these three in plain order, whatever the input's
    "aten::smooth_l1_loss_backward": like(1),
    "aten::huber_loss_backward": like(1),
    "aten::fake_quantize_per_tensor_affine_cachemask": two_like(torch.bool),
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": two_like(torch.bool),
    "aten::fake_quantize_per_channel_affine_cachemask": two_like(torch.bool),
    "aten::geqrf": geqrf,
    "aten::linalg_lstsq": lstsq,
    "aten::roll": like(),  # TensorTransformations.cu: in the order of the dimensions, whatever the input's
    "aten::mm.dtype": product(False),
    "aten::bmm.dtype": product(False),
    "aten::addmm.dtype": product(True),
    "aten::baddbmm.dtype": product(True),
}  # fmt: skip


def name_of(func):
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def run(mode, func, args, kwargs, fakes):
    """The outputs of an operator that is in the table; None if it is not."""
    shape = SHAPES.get(name_of(func))
    if shape is None:
        return None
    device = next(t.fake_device for t in fakes)

    def make(size, dtype):
        with torch._C._DisableTorchDispatch():
            elem = torch.empty(tuple(size), dtype=dtype, device="meta")
        return FakeTensor(mode.fake, elem, device)

    return shape(make, *args, **kwargs)


def is_missing(error):
    """Whether an operator failed because it has no shape function, and not by its arguments."""
    return isinstance(error, MISSING) or isinstance(error, RuntimeError) and "NVIDIA driver" in str(error)


CALLS_OTHERS = {"aten::_pack_padded_sequence"}  # kernels in C++ that only call other operators, on every kind of tensor


def calls_others(func):
    return func.name() in CALLS_OTHERS


def without_shape(mode, func, args, error):
    """An operator that has no shape function: one that only writes to its arguments needs none."""
    if not is_missing(error):
        raise error
    schema = func._schema
    if all(r.alias_info is not None and r.alias_info.is_write for r in schema.returns):
        written = [a for s, a in zip(schema.arguments, args) if s.alias_info is not None and s.alias_info.is_write]
        mode.session.drawn(f"{schema.name} (not checked)")
        return None if not schema.returns else written[0] if len(schema.returns) == 1 else tuple(written)
    sentence = f"the tracer cannot run {name_of(func)}: PyTorch {torch.__version__} has no shape function for it"
    mode.session.refuse(sentence)
    raise NotImplementedError(f"allocrig trace: {sentence}. Please report it with the program's line.") from error
