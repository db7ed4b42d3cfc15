"""Triton without a driver: kernels of the program are not compiled and do nothing when they are launched.

They allocate nothing, except when triton.autotune times their configurations: triton/testing.py makes a buffer of
256 MiB for it, and so does the stand-in here, once for each configuration.
"""

from types import SimpleNamespace

import torch

from . import values

BENCHMARK_BUFFER = 256 << 20  # triton/backends/nvidia/driver.py, get_empty_cache_for_benchmark


class Driver:
    """Stands for triton's driver of NVIDIA cards."""

    def __init__(self, current):
        from triton.backends.compiler import GPUTarget

        self.current = current
        self.target = GPUTarget("cuda", round(float(current().card.sm) * 10), 32)
        self.utils = SimpleNamespace(get_device_properties=self.properties)
        self.launcher_cls = None
        self.get_device_capability = torch.cuda.get_device_capability

    def properties(self, device):
        found = torch.cuda.get_device_properties(device)
        return {
            "max_shared_mem": found.shared_memory_per_block_optin,
            "multiprocessor_count": found.multi_processor_count,
            "sm_clock_rate": found.clock_rate,
            "mem_clock_rate": found.memory_clock_rate,
            "mem_bus_width": found.memory_bus_width,
            "max_num_regs": found.regs_per_multiprocessor,
            "warpSize": 32,
        }

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return torch.cuda.current_device()

    def set_current_device(self, device):
        torch.cuda.set_device(device)

    def get_current_stream(self, device=None):
        return self.current().stream_now(device)

    def get_active_torch_device(self):
        return self.current().current_device()

    def get_device_interface(self):
        return torch.cuda

    def get_empty_cache_for_benchmark(self):
        return torch.empty(BENCHMARK_BUFFER // 4, dtype=torch.int, device=self.current().current_device())

    def clear_cache(self, cache):
        cache.zero_()

    def get_benchmarker(self):
        return self.benchmark

    def benchmark(self, call, *args, quantiles=None, return_mode="mean", **kwargs):
        """triton/testing.py, do_bench, without the repetitions."""
        call()
        cache = self.get_empty_cache_for_benchmark()
        call()
        self.current().trace.event("s")
        del cache
        return [1.0] * len(quantiles) if quantiles is not None else 1.0


def install(current):
    """Called when triton has been imported."""
    import triton.runtime.driver
    import triton.runtime.jit
    import triton.testing

    stand_in = Driver(current)
    triton.runtime.driver.set_active(stand_in)
    triton.testing.do_bench = stand_in.benchmark
    launch = triton.runtime.jit.JITFunction.run

    def run(self, *args, grid, warmup, **kwargs):
        session = current()
        if session is None or not session.active():
            return launch(self, *args, grid=grid, warmup=warmup, **kwargs)
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        values.forget_tables((*args, *kwargs.values()))
        return None

    triton.runtime.jit.JITFunction.run = run
