#!/usr/bin/env python3
"""Runs one program on a card, unchanged, and writes what its allocator did.

    record_one.py OUT PROGRAM.py [WORD..] [--limit BYTES] [--seed N] [--history | --stacks]

OUT.json has the allocator's statistics and versions. --history also writes OUT.csv.gz, the "Recorded CSV" of
workloads/trace/FORMAT.md, with a mark at the end of each step of an optimizer. --stacks writes OUT.ops.gz instead:
one line a request with its step, bytes, stream, the innermost operators of ATen, and the line of the program.
--limit calls torch.cuda.set_per_process_memory_fraction before the program starts. --seed adds N to the seeds that the
program gives to random.seed and torch.manual_seed: another run of the same program.
"""
import argparse
import gzip
import json
import os
import random
import re
import runpy
import sys
import time
import weakref

options = argparse.ArgumentParser()
options.add_argument("out")
options.add_argument("program")
options.add_argument("words", nargs="*", help="arguments of the program")
options.add_argument("--limit", type=int, default=0)
options.add_argument("--seed", type=int, default=0)
options.add_argument("--history", action="store_true")
options.add_argument("--stacks", action="store_true")
options = options.parse_args()
if options.stacks:
    os.environ.setdefault("TORCH_SYMBOLIZE_MODE", "dladdr")
import torch  # noqa: E402  the program itself has not started
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

start = time.time()
torch.cuda.init()
if options.limit:
    torch.cuda.set_per_process_memory_fraction(options.limit / torch.cuda.mem_get_info()[1])
if options.history:
    torch.cuda.memory._record_memory_history(max_entries=4000000, context=None)
if options.stacks:
    torch.cuda.memory._record_memory_history(max_entries=400000, context="alloc", stacks="all")
marks, first = [], []


def stepped(optimizer, args, kwargs):
    """A step ends when the first of the program's optimizers has stepped, as in a trace."""
    first[:] = first or [weakref.ref(optimizer)]
    if optimizer is first[0]():
        marks.append(time.time_ns() // 1000)


register_optimizer_step_post_hook(stepped)
if options.seed:
    for module, function in ((random, "seed"), (torch, "manual_seed")):
        setattr(module, function, lambda seed, seeded=getattr(module, function): seeded(seed + options.seed))

failed, kind = "", "finished"
program = os.path.abspath(options.program)
sys.argv = [options.program, *options.words]
sys.path[0] = os.path.dirname(program)
try:
    runpy.run_path(program, run_name="__main__")
except torch.cuda.OutOfMemoryError as e:
    failed, kind = str(e)[:400], "out of memory"
except SystemExit as e:
    kind = "finished" if not e.code else "exit"
except Exception as e:  # noqa: BLE001  the record says which
    failed, kind = f"{type(e).__name__}: {e}"[:400], "failed"
torch.cuda.synchronize()

stats = torch.cuda.memory_stats()
seconds = time.time() - start


def version(name):
    return getattr(sys.modules.get(name), "__version__", "")


keep = ("allocated_bytes.all", "reserved_bytes.all", "active_bytes.all", "requested_bytes.all", "segment.all",
        "num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free")
result = {
    "name": "_".join([os.path.basename(program)[:-3], *options.words]), "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
    "limit": options.limit, "seed": options.seed, "outcome": kind, "failed": failed, "steps": len(marks), "seconds": round(seconds, 2),
    "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "card": torch.cuda.get_device_name(),
    "card_bytes": torch.cuda.mem_get_info()[1],
    "versions": {n: version(n) for n in ("transformers", "timm", "torchvision", "torch_geometric") if version(n)},
    "stats": {k: v for k, v in stats.items() if k.startswith(keep)},
}
if options.history or options.stacks:
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    result["events"] = len(trace)


def rows():
    """Events in the allocator's order, whatever its clock says, and the marks between them."""
    last, out = 0, []
    for e in trace:
        last = max(last, e.get("time_us", 0))
        out.append((last, 0, f"{e['action']},{e.get('addr', 0)},{e.get('size', 0)},{e.get('stream', 0)},{last}"))
    out += [(t, 1, f"mark,0,{i + 1},0,{t}") for i, t in enumerate(marks)]
    out.sort(key=lambda r: r[:2])
    return (r[2] for r in out)


OPERATOR = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)")
BORING = re.compile(r"^(empty|new_empty|resize_|_empty)")
FUNCTION = re.compile(r"((?:\w+::)*~?\w+)(?:<.*>)?\(")


def operators(frames):
    """The innermost operators that are more than `empty`, at most three, and the line of the program."""
    names, own, line = [], "", ""
    for f in frames:
        if f["filename"].endswith(".py"):
            if not line and f["filename"] == program:
                line = f"{os.path.basename(program)}:{f['line']}"
            continue
        m = OPERATOR.search(f["name"])
        if m and not BORING.match(m[1]) and m[1] not in names[-1:] and len(names) < 3:
            names.append(m[1])
        elif not own and not names and not m:
            m = FUNCTION.search(f["name"])
            if m and not re.search(r"c10::|Caching|empty|std::|unwind|at::detail|Traceback|gather", f["name"]):
                own = m[1][-60:]
    return "<".join(names) + (f" [{own}]" if own else ""), line


if options.history:
    with gzip.open(options.out + ".csv.gz", "wt", compresslevel=6) as f:
        f.write("action,addr,size,stream,time_us\n")
        f.writelines(r + "\n" for r in rows())
if options.stacks:
    seen, step, times = {}, 0, list(marks)
    with gzip.open(options.out + ".ops.gz", "wt", compresslevel=6) as f:
        for e in trace:
            while times and e.get("time_us", 0) > times[0]:
                step, _ = step + 1, times.pop(0)
            if e["action"] != "alloc":
                continue
            key = id(e["frames"])
            if key not in seen:
                seen[key] = operators(e["frames"])
            f.write(f"{step},{e['size']},{e['stream']},{seen[key][0]},{seen[key][1]}\n")
json.dump(result, open(options.out + ".json", "w"))
print(result["name"], result["conf"], options.limit >> 20, kind, failed[:120],
      "live", stats["allocated_bytes.all.peak"] >> 20, "reserved", stats["reserved_bytes.all.peak"] >> 20,
      "retries", stats["num_alloc_retries"], f"{seconds:.1f}s", flush=True)
