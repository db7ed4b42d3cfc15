"""torch.autocast("cuda") for tensors that C++ does not take for CUDA tensors: the same casts, by the same lists.

The lists are those of ATen/autocast_mode.h of PyTorch 2.11. The functions here take the place of the kernels that
PyTorch registers under the dispatch key AutocastCUDA, so operators that C++ calls are cast as well.
"""

import functools
import warnings
import weakref

import torch

from .cudnn_sizes import rnn_weights

KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
LOWER = """_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
_scaled_dot_product_flash_attention scaled_dot_product_attention cudnn_convolution cudnn_convolution_transpose
_cudnn_rnn""".split()
FLOAT = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm
nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div
l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
upsample_bicubic2d _upsample_bicubic2d_aa""".split()
FLOAT_RESULT = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
linalg_matrix_norm.str_ord sum sum.dim_IntList""".split()
FLOAT_RESULT_LAST = """norm.Scalar norm.ScalarOpt_dim""".split()
# Operators that only call others, which are cast. Within inference mode they reach the dispatch mode whole, where autocast
# is off, so they are taken apart here.
COMPOSITE = """cross_entropy_loss nll_loss_nd lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data
rnn_relu.input rnn_relu.data upsample_nearest1d.vec _upsample_nearest_exact1d.vec upsample_nearest2d.vec
_upsample_nearest_exact2d.vec upsample_nearest3d.vec _upsample_nearest_exact3d.vec upsample_linear1d.vec
upsample_bilinear2d.vec _upsample_bilinear2d_aa.vec upsample_trilinear3d.vec upsample_bicubic2d.vec
_upsample_bicubic2d_aa.vec""".split()
PROMOTE = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()

_library = None
_casts = {}  # id of a parameter -> (weak reference, its cast), until autocast ends


def overload(name):
    packet, _, kind = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), kind or "default")


def castable(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.is_cuda and value.dtype != torch.float64


def cast(value, dtype):
    """A tensor, or the tensors of a list, in another type. Casts of parameters are kept while autocast is on."""
    if isinstance(value, (list, tuple)):
        return [cast(v, dtype) for v in value]
    if not castable(value) or value.dtype == dtype:
        return value
    kept = (
        torch.is_autocast_cache_enabled()
        and dtype == torch.get_autocast_dtype("cuda")
        and value.dtype == torch.float32
        and value.requires_grad
        and value.is_leaf
        and value._base is None
        and not (torch.is_inference_mode_enabled() and casts_keep_gradients())  # both are of one change of PyTorch
    )
    entry = _casts.get(id(value)) if kept else None
    if entry is not None and entry[0]() is value:
        return entry[1]
    if not kept:
        return value.to(dtype)
    with torch.set_grad_enabled(torch.is_grad_enabled() or casts_keep_gradients()):
        out = value.to(dtype)
    _casts[id(value)] = weakref.ref(value), out
    return out


@functools.cache
def casts_keep_gradients():
    """Whether this PyTorch makes the casts that it keeps with gradients even within no_grad: it is asked on the CPU.
    2.11 does. A weight with a gradient decides how a product runs (should_fold in native/LinearAlgebra.cpp)."""
    one = torch.nn.Parameter(torch.ones(1, 1, device="cpu"))
    with torch.inference_mode(False), torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad():
            torch.mm(one, one)
        with torch.enable_grad():
            return torch.mm(one, torch.ones(1, 1, device="cpu")).requires_grad


def casts(args, dtype):
    """The arguments of an operator in another type. GCC makes them from right to left, and so are their casts."""
    return [cast(a, dtype) for a in reversed(args)][::-1]


def tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def lower(op):
    def run(*args, **kwargs):
        dtype = torch.get_autocast_dtype("cuda")
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            return op(*casts(args, dtype), **{k: cast(v, dtype) for k, v in kwargs.items()})

    return run


class Flattened(torch.autograd.Function):
    """A weight as a part of a flat buffer of another type."""

    @staticmethod
    def forward(ctx, weight, part):
        ctx.dtype = weight.dtype
        return part.detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to(ctx.dtype), None


def recurrent(op):
    """AutocastRNN.cpp: float16, whatever the type of autocast; the weights are cast into one new buffer."""

    def run(input, weight, stride, buffer, hx, cx, mode, hidden, project, layers, *rest):
        first = weight[0] if buffer is None else buffer
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            if castable(first) and first.dtype != torch.float16:
                size = rnn_weights(mode, input.shape[-1], hidden, project, layers, rest[3])
                buffer, parts, at = torch.zeros(size, dtype=torch.float16, device=first.device), [], 0
                for w in weight:
                    parts.append(Flattened.apply(w, buffer.narrow(0, at, w.numel()).view(w.shape)))
                    at += w.numel()
                weight = parts
            input, hx, cx = casts((input, hx, cx), torch.float16)
            return op(input, weight, stride, buffer, hx, cx, mode, hidden, project, layers, *rest)

    return run


def full(op):
    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            args = casts(args, torch.float32)
            return op(*args, **{k: cast(v, torch.float32) for k, v in kwargs.items()})

    return run


WIDENS = {  # operators that read float16 and write float32 on a card, without a copy (native/SoftMax.cpp)
    torch.ops.aten.softmax.int: torch.ops.aten._softmax.default,
    torch.ops.aten.log_softmax.int: torch.ops.aten._log_softmax.default,
}


def full_result(op):
    names = [a.name for a in op._schema.arguments if not a.kwarg_only]
    at = names.index("dtype") if "dtype" in names else len(names)

    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            given = args[at] if len(args) > at else kwargs.get("dtype")
            if given is None and op in WIDENS and args[0].is_cuda and args[0].dtype == torch.float16:
                return WIDENS[op](args[0], args[1], True)
            if castable(args[0]) and given is None:
                args, kwargs["dtype"] = args[:at], torch.float32
            return op(*args, **kwargs)

    return run


def full_norm(op):
    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            return op(cast(args[0], torch.float32), *args[1:], **kwargs)

    return run


def promote(op):
    def run(*args, **kwargs):
        found = [t for t in tensors(args) if castable(t)]
        widest = torch.get_autocast_dtype("cuda")
        if any(t.dtype == torch.float32 for t in found):
            widest = torch.float32
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            return op(*casts(args, widest), **kwargs)

    return run


def composite(op):
    def run(*args, **kwargs):
        return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)

    return run


def refused(*args, **kwargs):
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Use torch.nn.BCEWithLogitsLoss or binary_cross_entropy_with_logits."
    )


def install():
    """Registers the functions, once."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("aten", "IMPL")
    registered = set(torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names, make in ((LOWER, lower), (FLOAT, full), (FLOAT_RESULT, full_result), (FLOAT_RESULT_LAST, full_norm),
                            (PROMOTE, promote)):  # fmt: skip
            for name in names:
                if f"aten::{name}" in registered:
                    made = recurrent if name == "_cudnn_rnn" else make
                    _library.impl(name, made(overload(name)), "AutocastCUDA", allow_override=True)
        for name in COMPOSITE:
            _library.impl(name, composite(overload(name)), "AutocastCUDA")
        _library.impl("binary_cross_entropy", refused, "AutocastCUDA", allow_override=True)
    clear = torch.clear_autocast_cache

    def cleared():
        _casts.clear()
        return clear()

    torch.clear_autocast_cache = cleared
