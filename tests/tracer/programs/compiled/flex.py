"""flex_attention under torch.compile, with a block mask."""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def causal(b, h, q, k):
    return q >= k


mask = create_block_mask(causal, None, None, 1024, 1024, device="cuda")
compiled = torch.compile(flex_attention)
for _ in range(3):
    q, k, v = [torch.randn(4, 8, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    o = compiled(q, k, v, block_mask=mask)
    o.sum().backward()
print(o.shape)
