"""Attention by every back end, forward and backward: flash, memory efficient, cuDNN, math; masks, causal, grouped."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(38)


def run(backend, dtype, batch, heads, queries, keys, width, **options):
    q = torch.randn(batch, heads, queries, width, device="cuda", dtype=dtype, requires_grad=True)
    k = torch.randn(batch, options.pop("groups", heads), keys, width, device="cuda", dtype=dtype, requires_grad=True)
    v = torch.randn_like(k, requires_grad=True)
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=k.shape[1] != heads, **options)
        out.float().square().mean().backward()
    torch.cuda.synchronize()
    print(backend, tuple(out.shape), q.grad.dtype)


mask = torch.rand(1, 1, 512, 512, device="cuda") < 0.9
bias = torch.randn(4, 8, 512, 512, device="cuda")
for _ in range(2):
    run(SDPBackend.FLASH_ATTENTION, torch.bfloat16, 8, 16, 1024, 1024, 64, is_causal=True)
    run(SDPBackend.FLASH_ATTENTION, torch.float16, 8, 12, 777, 1200, 80, dropout_p=0.1)
    run(SDPBackend.EFFICIENT_ATTENTION, torch.float32, 4, 8, 512, 512, 64)
    run(SDPBackend.EFFICIENT_ATTENTION, torch.float32, 4, 8, 512, 512, 64, attn_mask=bias)
    run(SDPBackend.EFFICIENT_ATTENTION, torch.bfloat16, 4, 8, 512, 512, 96, attn_mask=mask)
    run(SDPBackend.CUDNN_ATTENTION, torch.bfloat16, 8, 16, 1024, 1024, 128, is_causal=True)
    run(SDPBackend.CUDNN_ATTENTION, torch.float16, 4, 8, 512, 512, 64)
    run(SDPBackend.MATH, torch.float32, 4, 8, 512, 512, 64, attn_mask=mask)
    run(SDPBackend.MATH, torch.bfloat16, 4, 8, 640, 640, 64, is_causal=True, dropout_p=0.1)
    run([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], torch.bfloat16, 4, 16, 1024, 1024, 64, groups=4)
    run([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION], torch.float64, 2, 4, 384, 384, 32)
