"""Notes on memory that the driver takes for itself: `!,driver,local,BYTES` and `!,driver,took,BYTES`.

They do not count as memory of the program. They say where the driver places what the allocator asks for next, by which
allocators break ties (results/published/h200/addresses.md, measured with PyTorch 2.11 on an H200).
"""
import torch

from .kernels_misc import alike, temporary

LOCAL = 1024  # bytes of local memory that the driver keeps for each thread of a card
LOCAL_OF_KERNELS = 1376  # what it keeps from the first of most of PyTorch's kernels on
HANDLE = 64 << 20  # of a handle of cuBLAS, beside its workspace

# Operators whose kernels need no more local memory. The others were measured to need it, or were not measured.
SMALL = {
    "arange", "avg_pool2d", "baddbmm", "bmm", "addmm", "mm", "cat", "cumsum", "lift_fresh", "record_stream", "resize_", "set_",
    "max_pool2d_with_indices", "nonzero", "normal_", "normal", "uniform_", "random_", "rand", "randn", "rand_like", "randn_like",
    "randint", "roll", "triu", "tril", "_softmax", "_log_softmax", "_fft_r2c", "_fft_c2r", "_fft_c2c", "_local_scalar_dense",
    "_unique2", "_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention", "reflection_pad2d",
    "upsample_nearest2d", "_foreach_add", "_foreach_add_", "_fused_adam_", "_fused_adamw_",
}  # fmt: skip
COPIES = {"clone": 0, "_to_copy": 0, "copy_": 1}  # -> the argument that is copied


def is_small(func, args, outs):
    """Whether the operator launches no kernel that needs more local memory than the driver keeps at the start."""
    name = func._schema.name.removeprefix("aten::")
    if name in ("convolution", "cudnn_convolution"):
        return name != "convolution" or args[2] is None  # a bias is added by a kernel of its own
    if name not in COPIES:
        return name in SMALL or name.startswith(("empty", "new_empty"))
    source, target = args[COPIES[name]], outs[0] if outs else None
    if not isinstance(source, torch.Tensor) or target is None:
        return True
    if source.device.type != target.device.type:  # a kernel copies what is not in the order of its source
        return not temporary(target, source, len(args) > 2 and args[2])
    return target.device.type != "cuda" or source.dtype == target.dtype and alike(source, target)


class Driver:
    """The driver of one process, as far as addresses depend on it."""

    def __init__(self, trace):
        self.trace = trace
        self.handles = set()
        self.local = 0

    def grow(self, local):
        """Each thread of the card has so many bytes of local memory from here on."""
        if local > self.local:
            self.local = local
            self.trace.note("driver", "local", local)

    def launched(self, func, args, outs):
        """An operator on the card has run."""
        if self.local == LOCAL and not is_small(func, args, outs):
            self.grow(LOCAL_OF_KERNELS)

    def handle(self, device, thread):
        """cuBLAS is used in a thread, which makes a handle if it has none."""
        if (device, thread) not in self.handles:
            self.handles.add((device, thread))
            self.trace.note("driver", "took", HANDLE)
