"""Which kernel scaled_dot_product_attention runs on a card, and what it makes around the kernel.

The conditions are those of native/transformers/cuda/sdp_utils.cpp and native/transformers/attention.cpp of
PyTorch 2.11, and where another release differs, of that one.
"""

import math
import os

import torch
from torch.nested._internal import nested_tensor
from torch.nested._internal import sdpa as jagged

from . import autocast
from .release import cudnn_version, release

aten = torch.ops.aten
LOW = (torch.float16, torch.bfloat16)


def dense_serves(query, key, value, gqa):
    """Batch sizes, heads and lengths that the fused kernels take."""
    if not (query.dim() == key.dim() == value.dim() == 4) or 0 in (query.shape[2], key.shape[2], value.shape[2]):
        return False
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        return False
    heads = query.shape[1], key.shape[1], value.shape[1]
    if not gqa:
        return heads[0] == heads[1] == heads[2]
    return heads[0] % heads[1] == 0 and heads[0] % heads[2] == 0


def last_strides_one(*tensors):
    return all(t.stride(-1) == 1 or t.shape[-1] == 1 for t in tensors)


def cudnn_sizes_serve(query, value, sm, grad):
    """check_cudnn_tensor_shapes and, from 2.14 on, check_cudnn_d256_bprop_head_dim."""
    sizes = query.shape[3], value.shape[3]
    if sizes[0] % 8 or sizes[1] % 8 or (release() >= (2, 13) and max(query.shape[:2]) > 65535):
        return False
    wide = release() >= (2, 14) and cudnn_version() > 92200 and (sm == 9.0 or int(sm) == 10)
    if not wide:
        return max(sizes) <= 128 or sizes == (192, 128)
    return max(sizes) <= 256 and (not grad or max(sizes) <= 128 or sizes in ((192, 128), (256, 256)))


def cudnn_serves(query, key, value, mask, dropout, gqa, sm):
    cuda = torch.backends.cuda
    if not cuda.cudnn_sdp_enabled() or query.dtype not in LOW or not dense_serves(query, key, value, gqa):
        return False
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        return False
    if mask is not None and mask.requires_grad and torch.is_grad_enabled():  # it has no gradient of a bias
        return False
    if key.shape[2] == 1 or ((dropout or release() < (2, 9)) and query.shape[2] == 1):
        return False
    if release() >= (2, 12) and dropout * 16 != math.floor(dropout * 16):
        return False
    grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    if not cudnn_sizes_serve(query, value, sm, grad):
        return False
    return last_strides_one(query, key, value)


def flash_serves(query, key, value, mask, causal, gqa, sm):
    if not torch.backends.cuda.flash_sdp_enabled() or query.dtype not in LOW or mask is not None or sm < 8.0:
        return False
    if not dense_serves(query, key, value, gqa) or not query.shape[3] == key.shape[3] == value.shape[3] <= 256:
        return False
    if causal and query.shape[2] != key.shape[2]:
        return False
    return last_strides_one(query, key, value)


def efficient_serves(query, key, value, mask, gqa, sm):
    if not torch.backends.cuda.mem_efficient_sdp_enabled() or query.dtype not in (*LOW, torch.float32):
        return False
    if query.dtype == torch.bfloat16 and sm < 8.0 or not dense_serves(query, key, value, gqa and release() >= (2, 12)):
        return False
    alignment = 8 if query.dtype in LOW else 4
    if query.shape[3] != key.shape[3] or query.shape[3] % alignment or value.shape[3] % alignment:
        return False
    if any(t.stride(-1) != 1 for t in (query, key, value)):
        return False
    if release() >= (2, 13) and sm >= 8.0 and any(t.storage_offset() % alignment for t in (query, key, value)):
        return False
    return mask is None or mask.stride(-1) == 1 or mask.shape[-1] == 1


def choose(query, key, value, mask, dropout, causal, gqa, sm):
    """The kernel: "cudnn", "flash", "efficient" or "math". cuDNN comes first on compute capability 9 and 10."""
    options = {
        "cudnn": lambda: sm >= 8.0 and cudnn_serves(query, key, value, mask, dropout, gqa, sm),
        "flash": lambda: flash_serves(query, key, value, mask, causal, gqa, sm),
        "efficient": lambda: efficient_serves(query, key, value, mask, gqa, sm),
    }
    names = {1: "flash", 2: "efficient", 3: "cudnn", 0: "math"}
    order = ["flash", "efficient", "math", "cudnn"]
    if cudnn_preferred(sm):
        order = ["cudnn", "flash", "efficient", "math"]
    chosen = torch._C._get_sdp_priority_order() if hasattr(torch._C, "_get_sdp_priority_order") else None
    default = [1, 2, 0, 3]
    if chosen and list(chosen)[:4] != default[: len(chosen)]:
        order = [names[n] for n in chosen if n in names]
    for name in order:
        if name == "math" or options[name]():
            return name
    return "math"


def cudnn_preferred(sm):
    """check_prefer_cudnn_attention: not before 2.9. The environment can turn it off."""
    if release() < (2, 10):
        return release() == (2, 9) and sm in (9.0, 10.0) and os.environ.get("TORCH_CUDNN_SDPA_PREFERRED") != "0"
    return int(sm) in (9, 10) and cudnn_version() > 91500 and os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1"


def float_mask(mask, dtype):
    """convert_boolean_attn_mask: a mask of truth values becomes one of zeros, and minus infinity where it is false."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.scalar_tensor(-math.inf, dtype=dtype, device=mask.device))


def padded_mask(mask, query, key):
    """preprocess_mask: a mask whose strides are no multiples of 8 elements is copied into wider rows, then expanded."""
    length = mask.shape[-1]
    if mask.stride(-1) != 1 or any(n % 8 for n in mask.stride()[:-1]):
        mask = torch.nn.functional.pad(mask, (0, 8 - length % 8))[..., :length]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def padded_heads(tensor, multiple):
    extra = -tensor.shape[-1] % multiple
    return torch.nn.functional.pad(tensor, (0, extra)) if extra else tensor


def function(plain, current):
    """The function that takes the place of torch.nn.functional.scaled_dot_product_attention."""

    def serves(name):
        """For tensors of the jagged layout: flash and memory-efficient attention."""
        kinds = {"flash": LOW, "efficient": (*LOW, torch.float32)}[name]
        enabled = {"flash": torch.backends.cuda.flash_sdp_enabled, "efficient": torch.backends.cuda.mem_efficient_sdp_enabled}

        def can_use(params, debug=False):
            q, v = params.query, params.value
            fits = q.shape[-1] == v.shape[-1] <= 256 if name == "flash" else q.shape[-1] % (8 if q.dtype in LOW else 4) == 0
            return enabled[name]() and q.dtype in kinds and params.attn_mask is None and fits

        return can_use

    jagged.can_use_flash_attention, jagged.can_use_efficient_attention = serves("flash"), serves("efficient")

    def scaled_dot_product_attention(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        if torch.compiler.is_compiling() or not isinstance(query, torch.Tensor) or not query.is_cuda:
            return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if isinstance(query, nested_tensor.NestedTensor):
            return jagged.jagged_scaled_dot_product_attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
            )
        given = query, key, value, attn_mask  # they live until the call ends, whatever they are cast to
        rest = dropout_p, is_causal, scale, enable_gqa, float(current().card.sm), current().attention
        if not torch.is_autocast_enabled("cuda"):
            return attend(*given, *rest)
        with torch._C._ExcludeDispatchKeyGuard(autocast.KEY):  # what it calls is not cast again
            query, key, value, attn_mask = autocast.casts(given, torch.get_autocast_dtype("cuda"))
            return attend(query, key, value, attn_mask, *rest)

    return scaled_dot_product_attention


def math_attention(query, key, value, mask, dropout, causal, scale, gqa):
    """native/transformers/attention.cpp, _scaled_dot_product_attention_math, for CUDA."""
    kind = query.dtype
    if kind in LOW and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():
        query, key, value = query.float(), key.float(), value.float()
    factor = math.sqrt(1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    mask = float_mask(mask, query.dtype)
    if gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scaled = query * factor  # it lives until the call ends, the scaled keys do not
    scores = torch.matmul(scaled, key.transpose(-2, -1) * factor)
    if mask is not None:
        scores.add_(mask)
    scores = torch._safe_softmax(scores, -1)
    if dropout:
        scores = torch.nn.functional.dropout(scores, dropout)
    weights = scores.to(kind)  # the second result: it is made first, and nobody keeps it
    out = torch.matmul(scores, value).to(kind)
    del scores, weights
    return out


def first(outputs):
    """The first output of an operator. C++ destroys the others in order, Python the last one first."""
    kept, *rest = outputs
    del outputs
    while rest:
        del rest[0]
    return kept


def attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, sm, chosen=None):
    """The operators that a card runs. `chosen` counts the kernels by name."""
    name = choose(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, sm)
    need = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    if chosen is not None:
        chosen[name] += 1
    if name == "math":
        return math_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    attn_mask = float_mask(attn_mask, query.dtype)
    if name == "cudnn":
        return first(
            aten._scaled_dot_product_cudnn_attention(
                query, key, value, attn_mask, need, dropout_p, is_causal, False, scale=scale
            )
        )
    if name == "flash":
        size = query.shape[-1]
        used = 1.0 / math.sqrt(size) if scale is None else scale
        query, key, value = (padded_heads(t, 8) for t in (query, key, value))
        out = first(aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=used))
        return out[..., :size] if out.shape[-1] != size else out
    if attn_mask is not None:
        attn_mask = padded_mask(attn_mask, query, key)
        need = need or attn_mask.requires_grad
    return first(
        aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, need, dropout_p, is_causal, scale=scale
        )
    )
