#!/usr/bin/env python3
"""Which matrix products torch.compile pads on a card: padding.py OUT.tsv [SECONDS]

Inductor pads sizes of a product that are not multiples of 8 (16 bits) or 4 (32 bits) if it measures that the padded
product, with the copies that pad its operands, is a tenth faster (torch/_inductor/fx_passes/pad_mm.py). This asks its
own function for products of attention, of linear layers and of their derivatives, of several settings, in a random
order until the time is over, and writes what it measured: the time of the product, that with padding, and that of the
padded product alone. OUT.tsv is what `padding_pays` in ../allocrig_tracer/compiled_kernels.py is compared with.
"""
import inspect
import random
import sys
import time

import torch
from torch._inductor.fx_passes import pad_mm
from torch._inductor.runtime.benchmarking import benchmarker

SETTINGS = {"tf32": (torch.float32, "high"), "f32": (torch.float32, "highest"), "bf16": (torch.bfloat16, "highest"),
            "f16": (torch.float16, "highest")}
POSITIONS = (49, 50, 65, 101, 145, 150, 197, 198, 257, 322, 401, 513, 577, 602, 730, 1025, 1214, 1370, 1502)
ROWS = (250, 394, 985, 1021, 1970, 4095, 4098, 5122, 8190, 19264)
WIDTHS = (5, 10, 50, 91, 151, 257, 333, 770, 1001, 2049, 4097, 12001, 32001, 50257)
CHANNELS = (64, 192, 384, 768, 1024, 1536)


def attention(lot):
    """The products of attention and of its derivative. A letter is the layout: n as it is, t transposed."""
    t, d, batch = lot.choice(POSITIONS), lot.choice((16, 32, 64, 64, 80, 96, 128)), lot.choice((8, 12, 32, 48, 96, 144, 192, 288, 384))
    s = lot.choice((t, t, lot.choice(POSITIONS)))
    m, k, n, layout = lot.choice((
        (t, d, s, "nt"), (t, s, d, "nn"), (s, t, d, "tn"), (d, t, s, "tn"), (t, d, s, "nn"), (t, s, d, "nt")))
    return "bmm", batch, m, k, n, layout


def linear(lot):
    """A layer and its two derivatives, one or two of whose sizes are odd."""
    rows = lot.choice((*ROWS, 4096, 8192, 16384))
    width, channels = lot.choice(WIDTHS), lot.choice(CHANNELS)
    if lot.random() < 0.4:
        rows, width = lot.choice(ROWS), lot.choice((384, 768, 1536, 2304, 3072))
    return (lot.choice(("mm", "mm", "addmm")), 1, *lot.choice((
        (rows, channels, width, "nt"), (rows, width, channels, "nn"), (width, rows, channels, "tn"),
        (rows, channels, width, "nn"), (channels, rows, width, "tn"), (rows, width, channels, "nt"))))


def operand(batch, rows, columns, layout, dtype):
    if layout == "n":
        return torch.randn(*batch, rows, columns, device="cuda", dtype=dtype)
    return torch.randn(*batch, columns, rows, device="cuda", dtype=dtype).transpose(-1, -2)


def measure(case):
    """Inductor's decision and its times, and the time of the product with padded sizes alone."""
    setting, op, batch, m, k, n, layout, free_left, free_right = case
    dtype, precision = SETTINGS[setting]
    torch.set_float32_matmul_precision(precision)
    lead = (batch,) if op == "bmm" else ()
    left, right = operand(lead, m, k, layout[0], dtype), operand(lead, k, n, layout[1], dtype)
    bias = torch.randn(n, device="cuda", dtype=dtype) if op == "addmm" else None
    times, free = [], {"mat1": bool(free_left), "mat2": bool(free_right)}
    faster = pad_mm.is_padded_faster
    pad_mm.should_exclude_padding_time = lambda match, name: free[name]
    pad_mm.is_padded_faster = lambda key, original, padded: times.extend((original, padded)) or original > 1.1 * padded
    try:
        pads = inspect.unwrap(pad_mm._should_pad)(None, left, right, getattr(torch.ops.aten, op), bias)
    finally:
        pad_mm.is_padded_faster = faster
    if not times:
        return [int(pads), "", "", ""]
    lengths = [size + pad_mm.get_padded_length(size, pad_mm.get_alignment_size(left)) for size in (m, k, n)]
    left, right = operand(lead, *lengths[:2], layout[0], dtype), operand(lead, *lengths[1:], layout[1], dtype)
    even = benchmarker.benchmark_gpu(lambda: torch.matmul(left, right))
    return [int(pads), *(f"{1e3 * t:.2f}" for t in (*times, even))]


def main():
    out, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
    lot, start, seen, memory = random.Random(18), time.time(), set(), {}
    pad_mm.get_pad_cache = lambda: type("None", (), {"lookup": staticmethod(memory.get), "set_value": lambda *a, **k: None})
    with open(out, "w") as f:
        print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}", file=f)
        print("setting", "operator", "batch", "m", "k", "n", "layout", "free_left", "free_right", "pads", "time", "padded", "product",
              sep="\t", file=f)
        while time.time() < start + seconds:
            setting = lot.choice(("tf32",) * 5 + ("bf16",) * 3 + ("f16",) * 2 + ("f32",))
            case = (setting, *lot.choice((attention, attention, linear))(lot), lot.randrange(2), lot.randrange(2))
            free = [f if layout == "n" else 0 for f, layout in zip(case[-2:], case[-3])]  # a view is always copied
            case = (*case[:-2], *free)
            op, batch, m, k, n = case[1:6]
            if case in seen or batch * (m * k + k * n + m * n) > 6e8 or 2.0 * batch * m * k * n > 2e12:
                continue
            if not any(pad_mm.get_padded_length(s, 4 if "32" in setting else 8) for s in (m, k, n)):
                continue
            seen.add(case)
            print(*case, *measure(case), sep="\t", file=f, flush=True)
    print(f"{len(seen)} products in {time.time() - start:.0f} s")


if __name__ == "__main__":
    with torch.no_grad():
        main()
