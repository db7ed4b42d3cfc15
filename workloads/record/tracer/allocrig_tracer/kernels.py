"""What kernels take for themselves. See README.md; the tables are in kernels/."""

import torch

aten = torch.ops.aten
MATMUL = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}


def known(func):
    """Whether the kernel's own memory is known."""
    return False


def plan(func, args, kwargs, outs, ctx):
    """The steps in which the kernel allocates and frees, or None if it takes nothing of its own."""
    if func in MATMUL:
        return [("keep", ("cublas", ctx.device, ctx.thread, ctx.stream), 32 << 20)]
    return None
