"""Fourier transforms and linear algebra: workspaces of cuFFT and cuSOLVER.

The order of the requests is that of PyTorch 2.11 (aten/src/ATen/native/cuda/SpectralOps.cpp,
linalg/BatchLinearAlgebraLib.cpp). The sizes that the libraries ask for are fits to what was
measured with CUDA 13.0 (kernels/README.md has the residuals); a plan says so by a step "unsure".
"""
from .kernels_blas import keep_cublas
from .kernels_reduce import plain_strides
from .kernels_shape import Steps, argument, bytes_of, item_bytes, numel, product, round_up, strides_of, wrap

SMOOTH = 127  # cuFFT composes lengths of these prime factors; others take Bluestein's algorithm


def largest_factor(value):
    factor, most = 2, 1
    while factor * factor <= value:
        while value % factor == 0:
            most, value = factor, value // factor
        factor += 1
    return max(most, value)


def fft_workspace(length, batch, item, kind):
    """(bytes, how sure). Complex transforms of up to 24,576 numbers take nothing, and so do real
    ones of powers of 2 up to 8,192 and of products of 2, 3, 5 and 7 up to 2,048. Longer ones take
    their data once, Bluestein's algorithm several times."""
    factor = largest_factor(length)
    if kind == "c2c":
        if length * item <= 196608:
            return 0, factor <= 11 and length <= 8192
        return batch * length * item * (1 if factor <= SMOOTH else 4), factor <= SMOOTH
    if length & (length - 1) == 0 and length * item <= 65536 or factor <= 7 and length <= 2048:
        return 0, length <= 400
    if factor > SMOOTH and length > 8192:
        return 5 * batch * (length // 2 + 1) * item, False
    if length >= 65536:
        return batch * (length // 2 + 1) * item, factor <= SMOOTH
    return batch * length * item // 2, factor <= 7


def take_workspace(steps, length, batch, item, kind):
    size, sure = fft_workspace(length, batch, item, kind)
    steps.spend(size)
    if not sure:
        steps.unsure(0, 10 * batch * (length // 2 + 1) * item)


def gathers(tensor, dims, strides):
    """Whether the other dimensions, in the order of their strides, are not one dimension: then _exec_fft copies."""
    shape = [int(s) for s in tensor.shape]
    rest = sorted((d for d in range(len(shape)) if d not in dims and shape[d] > 1), key=lambda d: -strides[d])
    return any(strides[a] != strides[b] * shape[b] for a, b in zip(rest, rest[1:]))


def fft(kind):
    def rule(args, kwargs, outs, ctx):
        tensor, dims, out = args[0], args[1], outs[0]
        steps = Steps()
        if not dims or not numel(tensor):
            return steps.out(0)
        last = wrap(int(dims[-1]), len(tensor.shape))
        length = int((out if kind == "c2r" else tensor).shape[last])
        batch = product(s for d, s in enumerate(tensor.shape) if d != last)
        item = item_bytes(tensor) if kind != "r2c" else 2 * item_bytes(tensor)
        made = None
        one_plan = len(dims) <= 3 and [int(d) for d in dims[:2]] != [0, 1]  # use_optimized_cufft_path, SpectralOps.cpp
        if kind == "r2c" and len(dims) > 1 and not one_plan:
            made = steps.take(bytes_of(out))
        else:
            steps.out(0)
        if kind == "c2r":
            made = steps.take(bytes_of(tensor))
        first = [wrap(int(d), len(tensor.shape)) for d in (dims if kind == "c2c" else dims[-1:])]
        strides = plain_strides(tensor.shape) if kind == "c2r" else strides_of(tensor)
        copy = steps.take(bytes_of(tensor)) if len(dims) <= 3 and gathers(tensor, first, strides) else None
        take_workspace(steps, length, batch, item, kind)
        if made is not None and kind == "r2c":
            steps.out(0)
        return steps.give(copy, made)
    return rule


def matrices(tensor):
    """(count, rows, columns) of a batch."""
    shape = [int(s) for s in tensor.shape]
    return product(shape[:-2]), shape[-2], shape[-1]


def getrf(size):
    """Workspace of cuSOLVER's LU factorization of one matrix; a fit."""
    return 768 if size <= 32 else round_up(16 * size + 640, 256)


def library(size, places=None):
    """Outputs, then one temporary of size(count, rows, columns, item) bytes: a fit of the peak."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        steps = Steps()
        for index in places or range(len(outs)):
            steps.out(index)
        count, rows, columns = matrices(tensor)
        if numel(tensor):
            bytes_ = int(size(count, rows, columns, item_bytes(tensor)))
            steps.spend(bytes_)
            steps.unsure(0, 2 * bytes_)
        return steps
    return rule


def check_errors(args, kwargs, outs, ctx):
    """The status is read back: of one matrix by a comparison more."""
    steps = Steps()
    return steps.spend(1, 1) if not args[0].shape else steps.spend(1)


def qr(args, kwargs, outs, ctx):
    """geqrf, then orgqr unless only R is wanted; small batches of small matrices by cuBLAS."""
    tensor = args[0]
    mode = argument(args, kwargs, 1, "mode", "reduced")
    count, rows, columns = matrices(tensor)
    item, small = item_bytes(tensor), min(rows, columns)
    steps = Steps().out(0).out(1)
    if not numel(tensor):
        return steps
    tau = steps.take(count * small * item)
    if rows <= 256 and count >= max(2, rows // 16):
        steps.spend(count * 8, count * 8)
    else:
        status = steps.take(4)
        space = (2097280 + 4096 * max(256, columns)) * (1 if item == 4 else 2)  # large.tsv
        steps.unsure(0, 2 * space)
        for _ in range(count):
            steps.give(steps.take(space))
        steps.give(status)
    if mode != "r":
        status = steps.take(4)
        space = 132096 + 64 * small * item // 2 + (0 if small < 64 else 4 * small * small // 2)
        if small >= 128:
            space = 66560 + 384 * small * item  # large.tsv
        steps.unsure(0, 4 * space)
        for _ in range(count):
            steps.give(steps.take(space))
        steps.give(status)
    return steps.give(tau)


def inverse(args, kwargs, outs, ctx):
    """LU factors of a copy, then the solution of the unit matrix."""
    tensor = args[0]
    count, _, size = matrices(tensor)
    if count != 1 or not numel(tensor):
        return library(lambda b, m, n, i: b * n * ((2 if n > 16 else 1) * n * i + 28))(
            args, kwargs, outs, ctx)
    steps = Steps().out(0).out(1)
    made = [steps.take(bytes_of(tensor)), steps.take(4 * size)]
    keep_cublas(steps.spend(getrf(size)), ctx)
    if size <= 16:
        steps.spend(8, 8)
    else:
        more = [steps.take(8 * size) for _ in range(3)] + [steps.take(bytes_of(tensor))]
        if size <= 64:
            steps.spend(8, 8).spend(8, 8)
        steps.give(*reversed(more))
    steps.unsure(0, 1024)
    return steps.give(*reversed(made))


def solve(args, kwargs, outs, ctx):
    """LU factors, then two triangular systems on a copy of the right side."""
    count, _, size = matrices(args[0])
    if count != 1 or not numel(args[1]):
        return library(lambda b, m, n, i: 16 * b * n + getrf(n))(args, kwargs, outs, ctx)
    steps = keep_cublas(Steps().out(0).out(1).out(2).out(3).spend(getrf(size)), ctx)
    sizes = (8 * size,) * 3 + (bytes_of(args[1]),) if size > 64 else (4,)
    return steps.spend(*sizes).unsure(0, 2 * sum(sizes))


def triangular(args, kwargs, outs, ctx):
    """cuBLAS solves triangular systems; linalg_lu_solve is two if the right side has as many columns as rows."""
    rows, columns = (int(s) for s in outs[0].shape[-2:])
    steps = Steps().out(0)
    if matrices(outs[0])[0] == 1 and columns >= rows:
        keep_cublas(steps, ctx)
    return steps


def cholesky_with(second):
    """cholesky_solve and cholesky_inverse copy the factor; a single matrix has a status."""
    def rule(args, kwargs, outs, ctx):
        factor = args[1] if second else args[0]
        single = matrices(factor)[0] == 1
        steps = Steps()
        status = steps.take(4) if single and second else None
        steps.out(0)
        copy = steps.take(bytes_of(factor))
        last = steps.take(4) if single and not second else None
        return steps.give(last, copy, status)
    return rule


def decomposition(order, copies, space):
    """svd and eigh: statuses, a copy of the input for svd, the workspace (of svd a fit), then the check."""
    def rule(args, kwargs, outs, ctx):
        tensor = args[0]
        steps = Steps()
        for index in order:
            steps.out(index)
        if not numel(tensor):
            return steps
        count, rows, columns = matrices(tensor)
        item = item_bytes(tensor)
        status = steps.take(4 * count)
        size = int(space(count, max(rows, columns), item))
        if copies:
            steps.spend(bytes_of(tensor), size)
        elif columns > 32:
            for _ in range(count):
                steps.spend(size)
        else:
            steps.spend(size)
        if copies:
            steps.unsure(0, 2 * size)
        steps.spend(1, 1 if count == 1 else 0)
        return steps.give(status)
    return rule


def svd_space(count, size, item):
    """gesvdj of a square matrix, within 0.4 % of what was measured."""
    if size <= 32:
        return 992 * item
    blocks = -(-size // 32)
    return item * (2 * size * size + 2112 * blocks + 992 + 4 * max(0, blocks - 4) ** 2)


def eigh_space(count, size, item):
    """cuSOLVER's syevj for float32 from 32 to 512, of several small matrices syevBatched, else syevd."""
    if item == 4 and 32 <= size <= 512 and (count == 1 or size > 32):
        blocks = -(-size // 32)
        return item * (size * size + size + 4 * blocks * blocks + 1025 * blocks + 1024)
    small = 3 * size * size + 768 * size + 65536 + 75  # and up to 40 elements less or more
    large = 4 * size * size + 126 * size + -(-size // 32) * 32 + 32995
    return item * max(small, large) * (count if size <= 32 else 1)


RULES = {
    "aten._fft_r2c.default": fft("r2c"), "aten._fft_c2r.default": fft("c2r"),
    "aten._fft_c2c.default": fft("c2c"),
    "aten._linalg_check_errors.default": check_errors, "aten.linalg_qr.default": qr,
    "aten.linalg_cholesky_ex.default": library(lambda b, m, n, i: 2 * n * i if b == 1 else 0),
    "aten.cholesky_solve.default": cholesky_with(True),
    "aten.cholesky_inverse.default": cholesky_with(False),
    "aten.linalg_inv_ex.default": inverse,
    "aten._linalg_det.default": library(lambda b, m, n, i: b * n * 9 + getrf(n)),
    "aten._linalg_slogdet.default": library(lambda b, m, n, i: b * n * 9 + getrf(n)),
    "aten.linalg_lu_factor_ex.default": library(lambda b, m, n, i: getrf(n) if b == 1 else 16 * b),
    "aten._linalg_solve_ex.default": solve, "aten.linalg_lu_solve.default": triangular,
    "aten.linalg_solve_triangular.default": triangular,
    "aten._linalg_svd.default": decomposition((0, 2, 1), True, svd_space),
    "aten._linalg_eigh.default": decomposition((1, 0), False, eigh_space),
}
