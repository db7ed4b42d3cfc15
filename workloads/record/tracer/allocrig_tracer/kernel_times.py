"""How long kernels take, by a stated model: the longer of arithmetic and memory traffic, at a part of the card's peak.

Times decide when a block that another stream uses comes back, and how much an allocator's own time matters. They are
not a prediction of a program's speed: within a factor of two of measured kernels is what to expect.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.flop_counter import flop_registry

# Peak of 16-bit and of 32-bit arithmetic in 10^12 operations per second, and of memory in 10^12 bytes per second: the
# data sheets' figures for dense matrices.
PEAKS = (
    ("H200", 989, 67, 4.8), ("H100 PCIe", 756, 51, 2.0), ("H100", 989, 67, 3.35), ("GH200", 989, 67, 4.0),
    ("A100", 312, 19.5, 2.0), ("L40S", 362, 91.6, 0.864), ("L4", 121, 30.3, 0.3), ("3090", 71, 35.6, 0.936),
    ("4090", 165, 82.6, 1.008), ("5090", 210, 104.8, 1.792), ("B200", 2250, 80, 8.0), ("GB10", 125, 31, 0.273),
    ("MI300X", 1307, 163.4, 5.3), ("V100", 125, 15.7, 0.9), ("T4", 65, 8.1, 0.32),
)  # fmt: skip
REACHED = 0.7  # part of the peak that large kernels reach
LEAST_NS = 2000  # a kernel that does nothing


# An operator takes so long on the host, with the Python code around it: the median of the times between two requests in
# 48 recorded programs (5 to 39 us; tests/tracer/host_time.py).
HOST_NS = 21500
PCIE = 0.05  # 10^12 bytes per second between host and card
RANDOM_NS, PLAIN_NS = 8.0, 0.5  # an element of a random, or of another, tensor on the CPU


def peaks(name):
    return next((p[1:] for p in PEAKS if p[0] in name), PEAKS[2][1:])


def host_nanoseconds(func, out):
    """Time of an operator on the CPU."""
    if not isinstance(out, torch.Tensor) or not func._schema.returns or func._schema.returns[0].alias_info is not None:
        return 0
    name = func._schema.name
    return out.numel() * (RANDOM_NS if "rand" in name or "normal" in name else PLAIN_NS)


def nanoseconds(func, args, kwargs, outs, tensors, card):
    """Time of the kernels of an operator on a card."""
    low, full, traffic = peaks(card.name)
    moved = sum(t.numel() * t.element_size() for t in (*tensors, *outs) if isinstance(t, FakeTensor))
    time = moved / (traffic * REACHED * 1e3)
    if any(t.device.type == "cpu" and t.numel() > 1 for t in tensors):
        time = moved / 2 / (PCIE * 1e3)
    count = flop_registry.get(func.overloadpacket)
    if count is not None and outs:
        try:
            work = count(*args, **kwargs, out_val=outs[0] if len(outs) == 1 else tuple(outs))
        except (TypeError, ValueError, IndexError, AttributeError, AssertionError):
            work = 0
        half = outs[0].dtype in (torch.float16, torch.bfloat16)
        tf32 = torch.backends.cuda.matmul.allow_tf32 and outs[0].dtype == torch.float32
        rate = low if half else low / 2 if tf32 else full
        time = max(time, work / (rate * REACHED * 1e3))
    return int(max(time, LEAST_NS))
