"""Reads what XLA writes about a compiled module (`xla_dump_to`): its buffer assignment, and which allocation each
output is.

The text of the assignment is that of workloads/formats/xla/buffer_assignment.c. An execution asks the allocator for
each allocation that is an output or temporary, in the order of their numbers; parameters come from the caller,
constants lie in the program's code, and thread-local memory takes no request (openxla/xla, gpu_executable.cc and
gpu_executable_buffer_allocator.cc of August 2026, BufferForAllocation).
"""

import glob
import os
import re

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(.*)")
_VALUE = re.compile(r" value: <(\d+) (\S+) .*?\(size=(\d+)")
_POSITION = re.compile(r"  (\S+?)(?: ?\{(\d*)\})?$")
_COLOR = re.compile(r"color (\d+)")
_PARAMETER = re.compile(r"parameter (\d+)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\d*\}")
_DONOR = re.compile(r"\((\d+), \{\d*\}\)")
_SHAPE = re.compile(r"([a-z][a-z0-9]*)\[([\d,<=]*)\]")
HOST_COLOR = 5  # memory space of pinned host memory


class Allocation:
    """One allocation of the module. kind: parameter, constant, output, temp or none (no request)."""

    __slots__ = ("number", "size", "kind", "parameter", "pinned")

    def __init__(self, number, size, kind, parameter, pinned):
        self.number, self.size, self.kind = number, size, kind
        self.parameter, self.pinned = parameter, pinned


def read_allocations(text):
    """The allocations of a buffer assignment, by number, the allocation of each value, and the bytes of each value in
    temporary memory by its name."""
    allocations, of_value, temporaries, now = {}, {}, {}, None
    for line in text.splitlines():
        match = _ALLOCATION.match(line)
        if match:
            number, size, rest = int(match[1]), int(match[2]), match[3]
            parameter = _PARAMETER.search(rest)
            color = _COLOR.search(rest)
            if "thread-local" in rest:
                kind = "none"
            elif parameter:
                kind = "parameter"
            elif ", constant" in rest:
                kind = "constant"
            elif "preallocated-temp" in rest:
                kind = "temp"
            else:
                kind = "output"
            pinned = bool(color) and int(color[1]) == HOST_COLOR
            now = Allocation(number, size, kind, int(parameter[1]) if parameter else None, pinned)
            allocations[number] = now
        elif now is not None:
            match = _VALUE.match(line)
            if match:
                of_value.setdefault(int(match[1]), now.number)
                if now.kind == "temp":
                    temporaries[match[2] if match[2].endswith("}") else match[2] + "{}"] = int(match[3])
    return allocations, of_value, temporaries


def root_of(hlo):
    """The name of the root instruction of the entry computation."""
    entry = hlo.find("\nENTRY ")
    match = re.search(r"^\s*ROOT %?(\S+) =", hlo[entry:], re.M)
    return match[1] if match else ""


def read_outputs(values, root, of_value):
    """The allocation of each output, by its number; a module with one output has number 0."""
    outputs, value, in_positions = {}, None, False
    for line in values.splitlines():
        if line.startswith("<"):
            value = int(re.match(r"<(\d+)", line)[1])
        elif line.startswith(" positions:"):
            in_positions = True
        elif not line.startswith("  "):
            in_positions = False
        elif in_positions and value in of_value:
            match = _POSITION.match(line)
            if match and match[1] == root:
                outputs[int(match[2]) if match[2] else None] = of_value[value]
    if any(number is not None for number in outputs):
        outputs.pop(None, None)  # the table of the tuple
        return outputs
    return {0: number for number in outputs.values()}


def _braces(text, name):
    """What stands between the braces after `name={`, or ""."""
    start = text.find(name + "={")
    if start < 0:
        return ""
    at, depth = start + len(name) + 1, 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return text[at + 1 : i]
    return ""


def read_header(hlo):
    """Of the first line of a module: the parameter that each output may take over, the other donated parameters, and
    the type and the dimensions of each output."""
    line = hlo.split("\n", 1)[0]
    aliases = {int(o or 0): int(p) for o, p in _ALIAS.findall(_braces(line, "input_output_alias"))}
    donors = {int(p) for p in _DONOR.findall(_braces(line, "buffer_donor"))}
    layout = _braces(line, "entry_computation_layout")
    results = layout[layout.rfind("->") + 2 :]
    shapes = []
    for name, sizes in _SHAPE.findall(re.sub(r"/\*.*?\*/", "", results)):
        shapes.append((name, tuple(int(s.lstrip("<=")) for s in sizes.split(",") if s)))
    return aliases, donors, shapes


def read_folder(folder):
    """All of it for the module whose files are in `folder`: (allocations in order, outputs, aliases, donors, shapes,
    HLO text, live ranges, bytes of temporary values). Errors: LookupError if a file is missing."""

    def text(ending):
        found = sorted(glob.glob(os.path.join(glob.escape(folder), "*" + ending)))
        if not found:
            raise LookupError(f"XLA wrote no file *{ending}")
        with open(found[-1], encoding="utf-8", errors="replace") as file:
            return file.read()

    allocations, of_value, temporaries = read_allocations(text("after_optimizations-buffer-assignment.txt"))
    hlo = text("after_optimizations.txt")
    outputs = read_outputs(text("after_optimizations-buffer-assignment-values.txt"), root_of(hlo), of_value)
    aliases, donors, shapes = read_header(hlo)
    live_range = text("-live-range.txt")
    ordered = [allocations[n] for n in sorted(allocations)]
    return ordered, outputs, aliases, donors, shapes, hlo, live_range, temporaries
