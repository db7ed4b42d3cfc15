"""What the Triton kernels of Inductor ask of the allocator: nothing, except at their first launch.

A kernel with several configurations is timed at its first launch (runtime/triton_heuristics.py). The timing allocates a
buffer as large as the L2 cache, and copies of the arguments that the kernel changes. Padding of matrix products is
decided while compiling, by timing as well (fx_passes/pad_mm.py).
"""

import contextlib
import inspect

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from . import kernel_times, padding, values


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
            if name in self.mutated_arg_names or name.startswith(("out_ptr", "in_out_ptr")):  # Inductor's own names
                values.forget([value])
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
        products.append((op, mat1, mat2, free))
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


def padding_pays(card, op, left, right, free):
    """What Inductor would measure. `free`: whether each operand can be made with its padding."""
    from torch._inductor.fx_passes import pad_mm

    tf32 = left.dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32"
    if not tf32 and left.dtype not in (torch.float16, torch.bfloat16):
        return False
    batch, m, k = ([1, *pad_mm.realize_symbols(left.shape)])[-3:]
    n = pad_mm.realize_symbols(right.shape)[-1]
    even = [size + pad_mm.get_padded_length(plain, pad_mm.get_alignment_size(left))
            for size, plain in zip((m, k, n), (*left.shape[-2:], right.shape[-1]))]  # fmt: skip
    layout = "".join("n" if pad_mm.realize_symbols(t.stride())[-1] == 1 else "t" for t in (left, right))
    product = padding.Product(left.element_size(), op.__name__, batch, m, k, n, even, layout, free)
    speed, measured = kernel_times.peaks(card.name), kernel_times.peaks("H200")
    return product.pays(arithmetic=speed[0] / measured[0], traffic=speed[2] / measured[2])
