#!/usr/bin/env python3
"""Measures what CUDA operators of PyTorch allocate besides their outputs.

    python3 measure_kernels.py [-o DIR] [--only REGEX] [--seconds N] [--check cpu|meta]

Each case of calls_*.py runs twice: the first run shows what an operator keeps for the process (a
workspace of cuBLAS, for example), the second what every later call allocates. A dispatch mode sees
every ATen operator below autograd, as the tracer does; around each operator the script allocates a
marker, and the allocator's own history (torch.cuda.memory._record_memory_history) between two
markers is the operator's sequence of allocations and frees, to the byte as requested.

Output: DIR/kernels.tsv, one row for each distinct (operator, arguments, sequence):
    operator, run (1 or 2), thread (main or backward), arguments, outputs, sequence, case
arguments and outputs are JSON. A tensor is ["T", dtype, shape, stride, device, storage bytes];
an output that is an argument's storage has "=" in the place of the storage bytes.
sequence: oI=BYTES is the storage of output I, tN=BYTES a temporary, fN its free, kN=BYTES memory
that is kept after the operator, g frees memory that an earlier operator kept. A suffix @S says that
the allocation is on a stream that is not the default stream.
DIR/errors.tsv lists the cases that failed. Rows are written as they are measured.
"""
import argparse
import importlib
import json
import os
import re
import sys
import threading
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

FAMILIES = ("blas", "index", "reduce", "norm", "attention", "optim", "image", "data", "linalg",
            "more", "random")
MARK = 104729 * 512 + 1  # bytes of a marker; no case allocates this size
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
          "u8": torch.uint8, "b": torch.bool, "c64": torch.complex64, "c128": torch.complex128,
          "f8": torch.float8_e4m3fn}
DEVICE = "cuda"


def short(dtype):
    return str(dtype).replace("torch.", "")


def describe(value, known=None):
    """The JSON form of an argument or a result; known holds the storages of the arguments."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return ["S", short(value.dtype), list(value.shape), str(value.layout), value.device.type]
        pointer = value.untyped_storage().data_ptr()
        size = value.untyped_storage().nbytes()
        if known is not None and pointer and pointer in known:
            size = "="
        return ["T", short(value.dtype), list(value.shape), list(value.stride()), value.device.type,
                size]
    if isinstance(value, (list, tuple)):
        return [describe(v, known) for v in value]
    if isinstance(value, dict):
        return {k: describe(v, known) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return "%s" % value


class Watch(TorchDispatchMode):
    """Calls each operator between two markers and notes its arguments and results."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        flat = tree_flatten((args, kwargs))[0]
        inputs = [t for t in flat if isinstance(t, torch.Tensor)]
        if DEVICE != "cuda":
            self.calls.append(str(func))
            return func(*args, **kwargs)
        known = set()
        for t in inputs:
            if t.layout is torch.strided:
                known.add(t.untyped_storage().data_ptr())
        text = describe(list(args)), describe(kwargs)
        torch.empty(MARK, dtype=torch.uint8, device=DEVICE)
        result = func(*args, **kwargs)
        torch.empty(MARK, dtype=torch.uint8, device=DEVICE)
        outs = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]
        fresh = []
        for t in outs:
            parts = [t]
            if t.layout is torch.sparse_coo:
                parts = [t._indices(), t._values()]
            elif t.layout is torch.sparse_csr:
                parts = [t.crow_indices(), t.col_indices(), t.values()]
            for part in parts:
                if part.device.type != "cuda":
                    continue
                pointer = part.untyped_storage().data_ptr()
                if pointer and pointer not in known and pointer not in fresh:
                    fresh.append(pointer)
        thread = "main" if threading.current_thread() is threading.main_thread() else "backward"
        self.calls.append((str(func), thread, text, [describe(t, known) for t in outs], fresh))
        return result


def history():
    """The trace entries since the last call, and none older."""
    trace = torch._C._cuda_memorySnapshot(None)["device_traces"][torch.cuda.current_device()]
    record(True)
    return [(e["action"], e["addr"], e["size"], e["stream"]) for e in trace
            if e["action"] in ("alloc", "free_requested")]


def record(on):
    torch._C._cuda_record_memory_history("all" if on else None, None, "python", 1 << 20, True,
                                         False, False, [])


def pieces(trace):
    """Splits a trace at the markers: one list of entries for each operator."""
    found, inside, current, marker = [], False, [], 0
    for action, address, size, stream in trace:
        if action == "alloc" and size == MARK:
            marker = address
        elif action == "free_requested" and address == marker:
            marker = 0
            if inside:
                found.append(current)
            inside, current = not inside, []
        elif inside:
            current.append((action, address, size, stream))
    return found


def sequence(entries, fresh):
    """The text of one operator's allocations and frees."""
    last = {}
    for number, (action, address, _, _) in enumerate(entries):
        if action == "alloc":
            last[address] = number
        else:
            last.pop(address, None)
    tokens, live, taken = [], {}, 0
    for number, (action, address, size, stream) in enumerate(entries):
        where = "" if stream == 0 else "@S"
        if action == "alloc":
            kept = last.get(address) == number
            if kept and address in fresh:
                tokens.append("o%d=%d%s" % (fresh.index(address), size, where))
            else:
                tokens.append("%s%d=%d%s" % ("k" if kept else "t", taken, size, where))
                live[address] = taken
                taken += 1
        elif address in live:
            tokens.append("f%d" % live.pop(address))
        else:
            tokens.append("g")
    return " ".join(tokens)


class Case:
    """One call: fn on tensors made from specs; backward when a spec asks for a gradient."""

    def __init__(self, name, fn, *specs, **options):
        self.name, self.fn, self.specs, self.options = name, fn, specs, options

    def text(self):
        return "%s(%s)" % (self.name, ", ".join(str(s) for s in self.specs))

    def run(self, watch_factory):
        torch.manual_seed(1)
        args = [make(s) if isinstance(s, str) else s for s in self.specs]
        wanted = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        if self.options.get("setup"):
            args = [self.options["setup"](*args)]
            wanted = self.options.get("grads", lambda _: [])(args[0]) or wanted
        for run in (1, 2):
            with watch_factory(run):
                out = self.fn(*args)
                if wanted:
                    outs = [o for o in tree_flatten(out)[0]
                            if isinstance(o, torch.Tensor) and o.requires_grad]
                    outs = outs[:self.options.get("outs", 1)]
                    torch.autograd.grad(outs, wanted, [torch.ones_like(o) for o in outs],
                                        allow_unused=True)
            del out


SPEC = re.compile(r"^(\w+)\[([\d,]*)\]([A-Za-z]*)(?:<(\d+)>)?$")


def make(spec):
    """dtype[shape]FLAGS<HIGH>: g gradient, T last two dimensions transposed, S every second
    element of the last dimension, L channels last, Z zeros, P positive definite, O sorted offsets
    below HIGH, H in pinned host memory, C in host memory, N without a zero; integers are below
    HIGH."""
    if not SPEC.match(spec):
        return spec
    kind, shape, flags, high = SPEC.match(spec).groups()
    dtype = DTYPES[kind]
    shape = [int(s) for s in shape.split(",") if s]
    where = "cpu" if "H" in flags or "C" in flags else DEVICE
    if "T" in flags:
        shape[-2], shape[-1] = shape[-1], shape[-2]
    if "S" in flags:
        shape[-1] *= 2
    if "Z" in flags:
        t = torch.zeros(shape, dtype=dtype, device=where)
    elif "O" in flags:
        n = shape[0]
        t = (torch.arange(n, device=where) * (int(high) // n)).to(dtype)
    elif kind == "b":
        t = torch.rand(shape, device=where) < 0.5
    elif not dtype.is_floating_point and not dtype.is_complex:
        low = 1 if "N" in flags else 0
        t = torch.randint(low, int(high or 100), shape, device=where).to(dtype)
    elif kind == "f8":
        t = torch.randn(shape, device=where).to(dtype)
    else:
        t = torch.randn(shape, dtype=dtype, device=where)
    if "N" in flags and dtype.is_floating_point:
        t = t.abs() + 0.1
    if "P" in flags:
        t = t @ t.mT / t.shape[-1] + torch.eye(t.shape[-1], dtype=dtype, device=where)
    if "T" in flags:
        t = t.transpose(-1, -2)
    if "S" in flags:
        t = t[..., ::2]
    if "L" in flags:
        t = t.to(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
    if "H" in flags and DEVICE == "cuda":
        t = t.pin_memory()
    return t.detach().requires_grad_() if "g" in flags else t


def measure(cases, folder, seconds):
    start = time.time()
    seen = set()
    rows = open(os.path.join(folder, "kernels.tsv"), "w", encoding="utf-8")
    bad = open(os.path.join(folder, "errors.tsv"), "w", encoding="utf-8")
    rows.write("operator\trun\tthread\targuments\toutputs\tsequence\tcase\n")
    done = 0

    class Recording:
        def __init__(self, case, run):
            self.case, self.run = case, run

        def __enter__(self):
            torch.cuda.synchronize()
            history()
            self.watch = Watch()
            self.watch.__enter__()

        def __exit__(self, kind, value, traceback):
            self.watch.__exit__(kind, value, traceback)
            found = pieces(history())
            if kind is not None:
                return
            if len(found) != len(self.watch.calls):
                bad.write("%s\t%d markers, %d operators\n" % (self.case.text(), len(found),
                                                             len(self.watch.calls)))
                return
            for entries, call in zip(found, self.watch.calls):
                name, thread, (args, kwargs), outs, fresh = call
                text = sequence(entries, fresh)
                key = json.dumps([args, kwargs], separators=(",", ":")), json.dumps(
                    outs, separators=(",", ":")), text
                # run 2 is written once; run 1 only if it differs (memory kept for the process)
                if (name, thread) + key in seen or (self.run == 1 and "k" not in text):
                    continue
                seen.add((name, thread) + key)
                rows.write("\t".join([name, str(self.run), thread, key[0], key[1], text,
                                      self.case.text()]) + "\n")

    record(True)
    for case in cases:
        if time.time() - start > seconds:
            bad.write("%s\tnot run: time is up\n" % case.text())
            continue
        try:
            case.run(lambda run: Recording(case, run))
        except Exception as error:  # a case that fails is listed
            bad.write("%s\t%s\n" % (case.text(), str(error).split("\n")[0][:200]))
            if "CUDA error" in str(error) and "out of memory" not in str(error):
                bad.flush()
                break
        done += 1
        if done % 20 == 0:
            rows.flush()
            bad.flush()
    rows.close()
    bad.close()
    print("%d cases, %d rows, %.1f s" % (done, len(seen), time.time() - start))


def check(cases):
    """Runs the cases without a card, to find those that cannot work."""
    class Off:
        def __enter__(self):
            self.watch = Watch()
            self.watch.__enter__()

        def __exit__(self, *error):
            self.watch.__exit__(*error)
            seen.update(self.watch.calls)

    seen, failed = set(), 0
    for case in cases:
        try:
            case.run(lambda run: Off())
        except Exception as error:
            failed += 1
            print("%s\t%s: %s" % (case.text(), type(error).__name__,
                                  str(error).split("\n")[0][:160]))
    print("%d cases, %d failed, %d operators" % (len(cases), failed, len(seen)))


def main():
    global DEVICE
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", default=".")
    parser.add_argument("--only", default="")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--part", default="0/1", help="I/N: every Nth case, from case I")
    parser.add_argument("--seed", type=int, default=18, help="of the shapes of calls_random.py")
    parser.add_argument("--check", choices=("cpu", "meta"))
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.modules.setdefault("measure_kernels", sys.modules[__name__])
    cases = []
    for family in options.families.split(","):
        module = importlib.import_module("calls_" + family)
        cases += module.cases(options.seed) if family == "random" else module.cases()
    cases = [c for c in cases if re.search(options.only, c.text())]
    part, parts = map(int, options.part.split("/"))
    cases = cases[part::parts]
    if options.check:
        DEVICE = options.check
        check(cases)
        return
    os.makedirs(options.o, exist_ok=True)
    print("torch %s, cuda %s, cudnn %s, %s" % (torch.__version__, torch.version.cuda,
                                               torch.backends.cudnn.version(),
                                               torch.cuda.get_device_name()))
    measure(cases, options.o, options.seconds)


if __name__ == "__main__":
    main()
