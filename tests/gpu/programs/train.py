#!/usr/bin/env python3
"""Trains one model under one allocator, told what to do on standard input, a line each:

    start      makes the model, runs its first steps, answers with losses and memory
    block      runs one step, then a block of steps, answers with the seconds of the block
    end        ends

Answers are lines of JSON behind "@". Usage: train.py MODEL native|expandable|POLICY-SPEC
`native` and `expandable` are PyTorch's own allocator, without and with expandable segments; all else is the plug-in.
The kernels are deterministic, and nothing fills memory before it is used."""
import json
import os
import statistics
import sys
import time

MODEL, ALLOCATOR = sys.argv[1], sys.argv[2]
NATIVE = ALLOCATOR in ("native", "expandable")
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
if ALLOCATOR == "expandable":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
if not NATIVE:
    os.environ["ALLOCRIG_POLICY"] = ALLOCATOR

import torch  # noqa: E402

import models  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench", "plugin"))
import allocrig_torch  # noqa: E402


def answer(**values):
    print("@" + json.dumps(values), flush=True)


def memory():
    """What the allocator holds at most, by its own count; what the driver says that is used of the card now."""
    free, total = torch.cuda.mem_get_info()
    if NATIVE:
        stats = torch.cuda.memory_stats()
        live, held = stats["requested_bytes.all.peak"], stats["reserved_bytes.all.peak"]
    else:
        live, held = (allocrig_torch.figure(name) for name in ("peak_live_bytes", "peak_physical_bytes"))
    return {"peak_live_bytes": live, "peak_physical_bytes": held, "card_used_bytes": total - free}


def start():
    # Where it only warns, PyTorch leaves attention's backward pass as it is: sums in any order. Pooling has no other one.
    torch.use_deterministic_algorithms(True, warn_only=MODEL == "resnet50")
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.manual_seed(0)
    if not NATIVE:
        allocrig_torch.install()
    before = torch.cuda.mem_get_info()  # makes the context
    begun = time.perf_counter()
    step = models.MODELS[MODEL]()
    losses = [step(i) for i in range(models.LOSS_STEPS[MODEL])]
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    held = memory()
    held["card_used_bytes"] -= before[1] - before[0]
    bits = [float(loss).hex() for loss in losses]
    answer(losses=bits, finite=all(torch.isfinite(loss).item() for loss in losses), seconds=seconds,
           card=torch.cuda.get_device_name(), torch=torch.__version__, **held)
    return step, len(losses)


def settle():
    """All threads onto the processors that the trainers share; loading PyTorch there takes a minute, so not earlier."""
    cpus = [int(cpu) for cpu in os.environ["TRAIN_CPUS"].split(",")]
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:
            pass  # it has ended


def block(step, at, count):
    """The median of the steps: what the machine does to a few of them does not count."""
    step(at)
    torch.cuda.synchronize()
    seconds = []
    for i in range(at + 1, at + 1 + count):
        begun = time.perf_counter()
        step(i)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    answer(seconds=statistics.median(seconds) * count, steps=count)
    return at + 1 + count


def main():
    import warnings

    warnings.filterwarnings("ignore")
    answer(torch=torch.__version__)
    step, at = None, 0
    for line in sys.stdin:
        words = line.split()
        if words[0] == "start":
            step, at = start()
            if os.environ.get("TRAIN_CPUS"):
                settle()
        elif words[0] == "block":
            at = block(step, at, models.BLOCK_STEPS[MODEL])
        else:
            break


main()
