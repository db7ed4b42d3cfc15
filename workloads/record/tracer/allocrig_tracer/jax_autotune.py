"""What XLA's autotuner does on a card, by rule: what it takes while it compiles, and the workspaces of cuBLAS.

1. For each kernel that it tries out (products, and fusions that Triton can emit) it asks for the inputs, each with a
   red zone of 8 MiB on both sides, and runs the candidates one after another; the results of the first one and of the
   current one are live together. A candidate of cuBLAS has its workspace among the results. If memory is short it goes
   on without trying (openxla/xla, xla/backends/gpu/autotuner/gpu_profiler.cc, xla/service/gpu/autotuning/
   redzone_buffers.cc and xla/backends/autotuner/config_runner.cc of 2026), so these requests are probes.
2. A product of at least LARGE_FLOPS is given to cuBLAS: its workspace is live in the module's temporary memory while
   the product runs. On an H100 and an H200 products of 1000 x 1000 went to cuBLAS, those of 333 x 333 to Triton.
"""

import re

RED_ZONE_BYTES = 2 * (8 << 20)
LARGE_FLOPS = 0.4e9

_INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?(\S+) = (.*?) ([a-z][\w-]*)\((.*?)\)(?:,|$)")
_TYPE_BITS = {"pred": 8, "c64": 64, "c128": 128, "bf16": 16}
_SHAPE = re.compile(r"([a-z]+[0-9]*)[a-z0-9]*\[([\d,<=]*)\]")


def workspace_bytes(capability):
    """The workspace that XLA gives to cuBLAS."""
    return 32 << 20 if int(capability.partition(".")[0]) >= 9 else 4 << 20


def type_bytes(text):
    """The bytes of all arrays in the text of a type."""
    total = 0
    for name, sizes in _SHAPE.findall(text):
        bits = _TYPE_BITS.get(name) or int(re.sub(r"\D", "", name) or 0)
        for size in sizes.split(","):
            bits *= int(size.lstrip("<=") or 1)
        total += -(-bits // 8)
    return total


def _element(text, number):
    """The type of one element of a tuple without nested tuples."""
    return re.findall(r"[a-z0-9]+\[[\d,<=]*\](?:\{[^}]*\})?", text)[number]


def _numbers(text, name):
    found = re.search(name + r"=\{([\d,]*)\}", text)
    return [int(n) for n in found[1].split(",") if n] if found else []


class Kernel:
    """A kernel that the autotuner tries out. `flops` is 0 unless it is a product."""

    __slots__ = ("name", "inputs", "outputs", "flops")

    def __init__(self, name, inputs, outputs, flops):
        self.name, self.inputs, self.outputs, self.flops = name, inputs, outputs, flops


def kernels(hlo):
    """The kernels of a module in the order of its text."""
    types, dots, fusions, holds, computation = {}, {}, [], {}, ""
    for line in hlo.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            computation = line.split(" ")[1 if line.startswith("ENTRY") else 0].lstrip("%")
            continue
        match = _INSTRUCTION.match(line)
        if not match:
            continue
        name, kind, opcode, operands = match.groups()
        types[name] = kind
        holds.setdefault(computation, set()).add(opcode)
        if opcode == "dot":
            dots[computation] = (kind, operands, line)
        elif opcode == "fusion":
            backend = re.search(r'"kind":"([^"]*)"', line)
            called = re.search(r"calls=%?([^\s,]+)", line)
            emitted = backend and backend[1].startswith("__triton")
            if emitted or "kind=kInput" in line:
                fusions.append((name, kind, operands, called[1] if called else "", emitted))
    found = []
    for name, kind, operands, called, emitted in fusions:
        inside = holds.get(called, set())
        if not emitted and (not inside & {"reduce", "transpose"} or inside & {"scatter", "concatenate"}):
            continue  # Triton cannot emit it
        inputs = []
        for operand in operands.split(", "):
            operand, _, number = operand.strip().lstrip("%").partition("#")
            text = types.get(operand, "")
            try:
                inputs.append(type_bytes(_element(text, int(number)) if number else text))
            except IndexError:
                inputs.append(0)
        flops = 0
        if called in dots:
            out, factors, line = dots[called]
            left = types.get(factors.split(", ")[0].strip().lstrip("%"), "")
            sizes = [[int(n) for n in s.split(",") if n] for _, s in _SHAPE.findall(out)[:1] + _SHAPE.findall(left)[:1]]
            flops = 2.0
            for size in sizes[0]:
                flops *= size
            for place in _numbers(line, "lhs_contracting_dims"):
                flops *= sizes[1][place] if len(sizes) > 1 and place < len(sizes[1]) else 1
        found.append(Kernel(name, inputs, type_bytes(kind), flops))
    return found


def trials(found, workspace):
    """What the autotuner asks for, once for equal kernels: (sizes of the inputs, sizes of the results)."""
    seen = []
    for kernel in found:
        trial = ([size + RED_ZONE_BYTES for size in kernel.inputs], [kernel.outputs] + [workspace] * (kernel.flops > 0))
        if trial not in seen:
            seen.append(trial)
    return seen


def temp_with_workspaces(temp, found, workspace, live_range, value_bytes):
    """The bytes of the temporary memory if large products have a workspace in it. `live_range` is XLA's text;
    `value_bytes` the size of each value in the temporary memory."""
    order, lives = {}, []
    for line in live_range.splitlines():
        place = re.match(r"    (\d+):(\S+)$", line)
        span = re.match(r"    (\S+\{[\d,]*\}):(\d+)-(\d+)$", line)
        if place:
            order[place[2]] = int(place[1])
        elif span and span[1] in value_bytes:
            lives.append((int(span[2]), int(span[3]), value_bytes[span[1]]))
    for kernel in found:
        if kernel.flops >= LARGE_FLOPS and kernel.name in order:
            at = order[kernel.name]
            live = sum(size for begin, end, size in lives if begin <= at <= end)
            temp = max(temp, live + workspace + 256)
    return temp
