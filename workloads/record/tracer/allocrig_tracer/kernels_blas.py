"""Matrix products: workspaces of cuBLAS and cuBLASLt, copies of operands, grouped products.

Source: PyTorch 2.11, aten/src/ATen/cuda/CublasHandlePool.cpp (one workspace for each handle and
stream; a thread has its own handle; the sizes and the environment variables that set them),
aten/src/ATen/native/cuda/Blas.cpp (operands that cuBLAS cannot read are copied; addmm with a bias
of one dimension takes cuBLASLt).
"""
import os
import re

from .kernels_shape import (Steps, argument, bytes_of, dense, is_tensor, numel, strides_of)

MIB = 1 << 20


def release(ctx):
    """Major and minor number of PyTorch's release; 2.11 if the context does not name it."""
    found = re.match(r"(\d+)\.(\d+)", getattr(ctx, "torch_version", None) or "2.11")
    return int(found[1]), int(found[2])


def variable(name):
    """c10::utils::check_env: True, False, or None if the variable is not set to either."""
    value = os.environ.get(name, "").lower()
    return True if value in ("1", "true", "on", "y", "yes") else False if value in ("0", "false", "off", "n", "no") else None


def kept(ctx):
    """Whether workspaces live as long as the process. From 2.15 on each operation has its own
    (isCUDABlasWorkspaceCachingEnabled)."""
    return release(ctx) < (2, 15) or variable("TORCH_CUBLAS_WORKSPACE_CACHE") is True


def unified(ctx):
    """Whether cuBLASLt works in cuBLAS's workspace: by default from 2.12 on."""
    wanted = variable("TORCH_CUBLASLT_UNIFIED_WORKSPACE")
    return kept(ctx) and (wanted is True or (wanted is None and release(ctx) >= (2, 12)))


def cublas_bytes(ctx):
    """parseChosenWorkspaceSize: 32 MiB on compute capability 9.0, from 2.12 on also on later ones;
    else :4096:2:16:8."""
    config = os.environ.get("CUBLAS_WORKSPACE_CONFIG", "")
    pairs = re.findall(r":([0-9]+):([0-9]+)", config)
    if pairs:
        return sum(int(size) * 1024 * int(count) for size, count in pairs)
    large = float(ctx.sm) == 9.0 if release(ctx) < (2, 12) else float(ctx.sm) >= 9.0
    return 32 * MIB if large else 4096 * 1024 * 2 + 16 * 1024 * 8


def cublaslt_bytes(ctx):
    """getCUDABlasLtWorkspaceSize: 1 MiB, and not more than cuBLAS's while those are kept."""
    value = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
    size = int(value) * 1024 if value.isdigit() else MIB
    if (2, 9) <= release(ctx) and kept(ctx) and variable("TORCH_CUBLASLT_UNIFIED_WORKSPACE") is not False:
        size = min(size, cublas_bytes(ctx))
    return size


def keep_cublas(steps, ctx):
    """The workspace of cuBLAS: one for each handle and stream, or one for the operation."""
    if not kept(ctx):
        return steps.spend(cublas_bytes(ctx))
    key = ("cublas", getattr(ctx, "device", 0), ctx.thread, ctx.stream)
    return steps.keep(key, cublas_bytes(ctx))


def keep_cublaslt(steps, ctx):
    """The handle of cuBLASLt is cuBLAS's: while workspaces are kept, its workspace is made as well.
    Before 2.9 the one of cuBLASLt was a tensor of the operation."""
    if not kept(ctx):
        return steps.spend(cublaslt_bytes(ctx))
    keep_cublas(steps, ctx)
    if unified(ctx):
        return steps
    if release(ctx) < (2, 9):
        return steps.spend(cublaslt_bytes(ctx))
    key = ("cublaslt", getattr(ctx, "device", 0), ctx.thread, ctx.stream)
    return steps.keep(key, cublaslt_bytes(ctx))


def readable(matrix):
    """prepare_matrix_for_cublas: the last two dimensions are rows or columns without gaps."""
    rows, columns = [int(s) for s in matrix.shape[-2:]]
    step_row, step_column = strides_of(matrix)[-2:]
    if len(matrix.shape) == 2 and dense(matrix):
        return True
    return (step_column == 1 and step_row >= max(1, columns)) or (
        step_row == 1 and step_column >= max(1, rows))


def copies(steps, *matrices):
    """Contiguous copies of the operands that cuBLAS cannot read, right operand first."""
    return [steps.take(bytes_of(m)) for m in matrices if not readable(m)]


def product_of(first, second, outputs=True):
    """mm, bmm and those with an addend: the places of the operands."""
    def rule(args, kwargs, outs, ctx):
        a, b = args[first], args[second]
        if not (is_tensor(a) and is_tensor(b)):
            return None
        steps = Steps()
        if outputs:
            steps.out(0)
        if not numel(a) or not numel(b):
            return steps
        made = copies(steps, b, a)
        keep_cublas(steps, ctx)
        return steps.give(*reversed(made))
    return rule


def addmm(args, kwargs, outs, ctx):
    bias, a, b = args[0], args[1], args[2]
    if not (is_tensor(a) and is_tensor(b)):
        return None
    steps = Steps().out(0)
    if not numel(a) or not numel(b):
        return steps
    made = copies(steps, b, a)
    beta = argument(args, kwargs, None, "beta", 1)
    lt = (len(bias.shape) == 1 and beta == 1 and dense(bias) and min(int(s) for s in b.shape) > 1
          and str(bias.dtype) == str(a.dtype))
    (keep_cublaslt if lt else keep_cublas)(steps, ctx)
    return steps.give(*reversed(made))


def vector(args, kwargs, outs, ctx):
    """mv, addmv, dot, vdot: cuBLAS with its workspace."""
    if not all(hasattr(t, "stride") for t in args if hasattr(t, "shape")):
        return None
    return keep_cublas(Steps().out(0), ctx)


def lt_product(args, kwargs, outs, ctx):
    """_scaled_mm of whole-tensor scales and _int_mm: cuBLASLt."""
    return keep_cublaslt(Steps().out(0), ctx)


def scaled_mm(args, kwargs, outs, ctx):
    """Scales of rows are CUTLASS's part on compute capability 9.0, without a workspace."""
    scale = argument(args, kwargs, 2, "scale_a")
    if scale is not None and numel(scale) > 1:
        return None
    return lt_product(args, kwargs, outs, ctx)


def grouped(bytes_of_group, bytes_of_sm):
    """Grouped products of CUTLASS (compute capability 9.0): the arguments of each group, and the
    descriptors of each multiprocessor. A fit: the constants are those measured on 132."""
    def rule(args, kwargs, outs, ctx):
        a, b = args[0], args[1]
        offsets = argument(args, kwargs, 4 if bytes_of_group == 76 else 2, "offs")
        groups = numel(offsets) if is_tensor(offsets) else int(a.shape[0])
        steps = Steps().out(0)
        if float(ctx.sm) != 9.0:
            return steps.unsure(0, groups * bytes_of(b) // max(1, int(b.shape[0])))
        steps.spend(bytes_of_group * groups, bytes_of_sm * ctx.sms)
        return steps
    return rule


RULES = {
    "aten.mm.default": product_of(0, 1), "aten.mm.dtype": product_of(0, 1),
    "aten.bmm.default": product_of(0, 1), "aten.bmm.dtype": product_of(0, 1),
    "aten.baddbmm.default": product_of(1, 2), "aten.baddbmm.dtype": product_of(1, 2),
    "aten.baddbmm_.default": product_of(1, 2, False), "aten.addmm_.default": product_of(1, 2, False),
    "aten.addbmm.default": product_of(1, 2),
    "aten.addmm.default": addmm, "aten._addmm_activation.default": addmm,
    "aten.mv.default": vector, "aten.addmv.default": vector, "aten.dot.default": vector,
    "aten.vdot.default": vector, "aten._int_mm.default": lt_product,
    "aten._scaled_mm.default": scaled_mm, "aten._grouped_mm.default": grouped(60, 512),
    "aten._scaled_grouped_mm.default": grouped(76, 640),
}
