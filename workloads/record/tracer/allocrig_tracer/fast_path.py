"""The fast path of nn.MultiheadAttention and nn.TransformerEncoderLayer in inference: its operators, one by one.

Source: PyTorch 2.11, aten/src/ATen/native/transformers/cuda/attention.cu (native_multi_head_attention_cuda),
transformers/attention.cpp (masked_softmax, transform0213_gemm_nt_bias), transformers/transformer.cpp.
"""

import torch
import torch.nn.functional as F

from . import attention

aten = torch.ops.aten


def on_card(compose):
    """A special case of values.SPECIAL: `compose` calls PyTorch's functions, each of which is recorded."""

    def special(mode, func, args, kwargs):
        with mode, torch.no_grad():
            return compose(mode, *args, **kwargs)

    return special


def heads_of(tensor, heads):
    return tensor.view(tensor.shape[0], -1, heads, tensor.shape[-1] // heads).transpose(1, 2)


def multi_head(mode, query, key, value, width, heads, qkv_weight, qkv_bias, weight, bias, mask=None, need_weights=True,
               average=True, mask_type=None):  # fmt: skip
    """(output, weights or None)."""
    if query is key and key is value and width // heads % 8 == 0 and not need_weights and mask is None:
        q = heads_of(query, heads)
        if attention.choose(q, q, q, None, 0.0, False, False, float(mode.session.card.sm)) != "math":
            x = F.linear(query, qkv_weight, qkv_bias)
            y = F.scaled_dot_product_attention(*(heads_of(part, heads) for part in x.chunk(3, -1)))
            y = y.transpose(1, 2).reshape(query.shape[0], -1, width)
            return F.linear(y, weight, bias), None
    return by_products(query, key, value, width, heads, qkv_weight, weight, bias, mask, need_weights, average)


def by_products(query, key, value, width, heads, qkv_weight, weight, bias, mask, need_weights, average):
    if query is key:
        x = torch.matmul(query, qkv_weight.t())
    else:
        x = torch.cat([torch.matmul(t, w.t()) for t, w in zip((query, key, value), qkv_weight.chunk(3))], dim=2)
    batch, tokens = query.shape[:2]
    packed = x.new_empty(3 * batch, heads, tokens, width // heads)  # _transform_bias_rescale_qkv
    del x
    q, k, v = (t.flatten(0, 1) for t in packed.split(batch))
    scores = torch.bmm(q, k.transpose(1, 2)).view(batch, heads, tokens, tokens)
    if mask is not None:
        kept = mask if mask.dtype == torch.bool else mask.to(torch.bool)
        scores = torch.empty_like(scores)  # _masked_softmax; without a mask the softmax is in place
        del kept
    torch.bmm(scores.flatten(0, 1), v, out=q)  # the place of the queries is used again
    weights = scores if need_weights else None
    del scores
    y = q.view(batch, heads, tokens, -1).transpose(1, 2).reshape(batch, tokens, width)
    out = F.linear(y, weight, bias)
    if weights is not None and average:
        weights = weights.sum(1).div_(heads)
    return out, weights


def encoder_layer(mode, src, width, heads, qkv_weight, qkv_bias, weight, bias, use_gelu, norm_first, eps, norm1_weight,
                  norm1_bias, norm2_weight, norm2_bias, up, up_bias, down, down_bias, mask=None, mask_type=None):  # fmt: skip
    def first_norm(x):
        return F.layer_norm(x, (width,), norm1_weight, norm1_bias, eps)

    def second_norm(x):
        return F.layer_norm(x, (width,), norm2_weight, norm2_bias, eps)

    x = first_norm(src) if norm_first else src
    x = multi_head(mode, x, x, x, width, heads, qkv_weight, qkv_bias, weight, bias, mask, False, True, mask_type)[0]
    x.add_(src)
    if not norm_first:
        x = first_norm(x)
    before = x
    if norm_first:
        x = second_norm(x)
    rows = x.reshape(-1, width)
    inner = aten._addmm_activation(up_bias, rows, up.t(), use_gelu=use_gelu)
    x = torch.addmm(down_bias, inner, down.t()).view_as(src)
    del inner, rows
    x.add_(before)
    return x if norm_first else second_norm(x)


COMPOSED = {
    aten._native_multi_head_attention.default: on_card(multi_head),
    aten._transformer_encoder_layer_fwd.default: on_card(encoder_layer),
}


def install(current):
    """Padded batches stay padded: the nested tensors that TransformerEncoder would make of them have no rules."""
    aligned = torch._nested_tensor_from_mask_left_aligned

    def left_aligned(src, mask):
        if current() is None or not src.is_cuda:
            return aligned(src, mask)
        current().mode.count_outside("nested tensors of TransformerEncoder", 0)
        return False

    torch._nested_tensor_from_mask_left_aligned = left_aligned
