"""What the Triton kernels of Inductor ask of the allocator: nothing, except at their first launch.

A kernel with several configurations is timed at its first launch (runtime/triton_heuristics.py). The timing allocates a
buffer as large as the L2 cache, and copies of the arguments that the kernel changes. Padding of matrix products is
decided while compiling, by timing as well (fx_passes/pad_mm.py).
"""

import contextlib
import inspect
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from . import kernel_times, values


class Launcher:
    """A configuration of a kernel as it is after its compilation. A launch does nothing."""

    store_cubin = False
    n_regs, n_spills, shared, cache_hash = 32, 0, 0, None

    def __init__(self, config):
        self.config = config

    def __call__(self, *args, **kwargs):
        return None


def install(current):
    """Called when Inductor has been imported."""
    from torch._inductor import async_compile
    from torch._inductor.runtime import benchmarking, triton_helpers, triton_heuristics

    triton_helpers.set_driver_to_gpu = lambda: None

    def precompile(self, *args, **kwargs):
        self.launchers = [Launcher(config) for config in self.configs]

    tuner = triton_heuristics.CachingAutotuner
    tuner.precompile, launch = precompile, tuner.run

    def run(self, *args, **kwargs):
        session = current()
        for name, value in zip(self.fn.arg_names, args):
            if name in self.mutated_arg_names and isinstance(value, FakeTensor):
                values.set_value(value, None)
        launched(session, args)
        return launch(self, *args, **kwargs)

    tuner.run = run

    def triton(self, kernel_name, source_code, device_str="cuda"):
        return async_compile._load_triton_kernel_from_source(kernel_name, source_code)

    async_compile.AsyncCompile.triton = triton
    async_compile.AsyncCompile.warm_pool = async_compile.AsyncCompile.wakeup = classmethod(lambda cls: None)

    def benchmark(self, call, *args, **kwargs):
        """runtime/benchmarking.py, InductorBenchmarker.benchmark_gpu, without the repetitions."""
        call()
        buffer = torch.empty(self.L2_cache_size // 4, dtype=torch.int, device=current().current_device())
        call()
        current().trace.event("s")
        del buffer
        return 1.0

    benchmarking.InductorBenchmarker.benchmark_gpu = benchmark
    _padding(current)


def launched(session, args):
    """Writes a launch with its time: that of the memory traffic of its arguments."""
    tensors = [a for a in args if isinstance(a, FakeTensor) and a.is_cuda]
    if not tensors or not session.active() or not session.kernel_times:
        return
    session.host_ns += kernel_times.HOST_NS
    session.trace.event("t", int(session.host_ns))
    traffic = kernel_times.peaks(session.card.name)[2] * kernel_times.REACHED * 1e3
    time = sum(t.numel() * t.element_size() for t in tensors) / traffic
    stream = session.ledger.ordinal(tensors[0].fake_device.index, session.stream_now())
    session.trace.event("k", stream, int(max(time, kernel_times.LEAST_NS)))


def _padding(current):
    """fx_passes/pad_mm.py pads the sizes of a matrix product if that was faster. See `padding_pays` for the rule."""
    from torch._inductor.fx_passes import pad_mm

    decide, known = inspect.unwrap(pad_mm._should_pad), {}  # without PyTorch's cache of decisions on disk
    products = []

    class Cache:
        """The decisions of this process; PyTorch keeps them on disk."""

        lookup = staticmethod(known.get)

        @staticmethod
        def set_value(key, value):
            known[key] = value

    def should_pad(match, mat1, mat2, op, input=None):
        free = [pad_mm.should_exclude_padding_time(match, name) for name in ("mat1", "mat2")]
        products.append((mat1, mat2, *free))
        try:
            return decide(match, mat1, mat2, op, input)
        finally:
            products.pop()

    def is_padded_faster(key, original, padded):
        known[key] = padding_pays(current().card, *products[-1])
        return known[key]

    @contextlib.contextmanager
    def on_card():
        """PyTorch leaves its modes to time the product on the card: here its tensors are those of the program."""
        with unset_fake_temporarily(), current().mode:
            yield

    pad_mm._should_pad = should_pad
    pad_mm.is_padded_faster = is_padded_faster
    pad_mm.get_pad_cache = lambda: Cache
    pad_mm.no_dispatch = on_card


def padding_pays(card, left, right, free_left, free_right):
    """Whether a 16-bit product with padded sizes is at least a tenth faster, with the copies that pad it.

    The model has the rates that an H200 reaches with rows of 2, 4 and 16 bytes' alignment, of 42 products of which it
    decides 38 as the card did; the other four are within a fifth of the border. 32-bit products never gained.
    `free_left`, `free_right`: the operand can be made with its padding.
    """
    if left.dtype not in (torch.float16, torch.bfloat16):
        return False
    *batch, m, k = (int(n) for n in left.shape)
    n, batch = int(right.shape[-1]), math.prod(int(b) for b in batch)
    turned = right.stride(-1) != 1
    low, _, traffic = kernel_times.peaks(card.name)
    rate, traffic = low * 0.65e12, traffic * kernel_times.REACHED * 1e12
    rows = (k if left.stride(-1) == 1 else m, k if turned else n, n)
    slowest = min(1.0 if row % 8 == 0 else 0.4 if row % 2 == 0 else 0.21 for row in rows)
    work, moved = 2.0 * batch * m * k * n, 2.0 * batch * (m * k + k * n + m * n)
    original = max(work / (rate * slowest), moved / traffic) + 6e-6
    padded = max(work / rate, moved / traffic) + 6e-6
    if (m % 8 or k % 8) and not free_left:
        padded += 5e-6 + 4.0 * batch * m * k / traffic
    if (k % 8 or n % 8) and not free_right:
        padded += 5e-6 + 4.0 * batch * k * n / (traffic * (0.22 if turned else 1))
    return original > 1.1 * padded
