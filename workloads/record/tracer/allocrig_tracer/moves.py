"""`to`, `cuda` and `cpu` by what Python knows of a tensor.

C++ takes a tensor on the card for one on `meta`, so it would copy a tensor that is already where it should go, and it
knows no device of the card but 0. Here "cuda" without a number is the current device, and a tensor that has the device
and type already is returned as it is.
"""

import functools

import torch
from torch._prims_common import suggest_memory_format


def install(current):
    """Replaces the methods, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    to, cuda, cpu = torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu

    def move(self, device, dtype, non_blocking, copy, layout):
        if device is not None and device.type == "cuda" and device.index is None:
            device = current().current_device()
        there, same = device is None or self.device == device, dtype is None or self.dtype == dtype
        laid_out = layout in (None, torch.preserve_format) or suggest_memory_format(self) == layout
        if there and same and laid_out and not copy:
            return self
        chosen = {"non_blocking": non_blocking, "copy": copy}
        if layout is not None:
            chosen["memory_format"] = layout
        if there and not same:
            return to(self, dtype, **chosen)
        return to(self, device=self.device if device is None else device, dtype=dtype or self.dtype, **chosen)

    @functools.wraps(to)
    def moved(self, *args, **kwargs):
        session = current()
        if session is None or not session.active():
            return to(self, *args, **kwargs)
        if args and isinstance(args[0], torch.Tensor) or "other" in kwargs:
            other = kwargs.pop("other", None)
            other, args = (args[0], args[1:]) if other is None else (other, args)
            args = (other.device, other.dtype, *args)
        flags = [a for a in args if isinstance(a, bool)]
        copy = kwargs.pop("copy", len(flags) > 1 and flags[1])
        if flags:
            kwargs["non_blocking"] = flags[0]
        args = [a for a in args if not isinstance(a, bool)]
        device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)
        return move(self, device, dtype, non_blocking, copy, layout)

    @functools.wraps(cuda)
    def to_card(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
        session = current()
        if session is None or not session.active():
            return cuda(self, device, non_blocking=non_blocking, memory_format=memory_format)
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device or "cuda")
        return move(self, device, None, non_blocking, False, memory_format)

    @functools.wraps(cpu)
    def to_host(self, memory_format=torch.preserve_format):
        session = current()
        if session is None or not session.active() or self.device.type != "cpu":
            return cpu(self, memory_format=memory_format)
        return move(self, torch.device("cpu"), None, False, False, memory_format)

    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = moved, to_card, to_host
    torch.Tensor.type_as = lambda self, other: moved(self, other.device, other.dtype)
    _scatter(current)


def _scatter(current):
    """csrc/cuda/comm.cpp, for DataParallel: a part that is on its device already is not copied."""
    comm = torch.nn.parallel.comm
    plain = comm.scatter

    def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
        if current() is None or out is not None or devices is None:
            return plain(tensor, devices, chunk_sizes, dim, streams, out=out)
        parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim)
        return tuple(p.to(torch.device("cuda", d) if isinstance(d, int) else d) for p, d in zip(parts, devices))

    comm.scatter = scatter
