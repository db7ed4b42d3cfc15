#!/usr/bin/env python3
"""What PyTorch's memory functions answer in one program: memory_answers.py native|expandable|POLICY-SPEC OUT.json

`native` and `expandable` are PyTorch's own allocator; all else is a policy in the plug-in. The program allocates and frees
by a fixed rule, then trains a small model; what the functions answer at some points goes to OUT, compared by
memory_compare.py. Addresses are left out."""
import json
import os
import pickle
import sys
import tempfile

ALLOCATOR, OUT = sys.argv[1], sys.argv[2]
NATIVE = ALLOCATOR in ("native", "expandable")
if ALLOCATOR == "expandable":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402

if not NATIVE:
    import allocrig.torch

    allocrig.torch.use(ALLOCATOR)

MIB = 1 << 20
answers = {"points": {}}


def segments(found):
    """Without addresses, in an order that does not depend on them."""
    return sorted([one["total_size"], one["allocated_size"], one["active_size"], one["requested_size"], one["segment_type"],
                   bool(one["is_expandable"]), one["stream"] != 0, list(one["segment_pool_id"]),
                   [[block["address"] - one["address"], block["size"], block["state"]] for block in one["blocks"]]]
                  for one in found)


def note(point):
    torch.cuda.synchronize()
    answers["points"][point] = {
        "stats": dict(torch.cuda.memory_stats()),
        "allocated": torch.cuda.memory_allocated(), "max_allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.memory_reserved(), "max_reserved": torch.cuda.max_memory_reserved(),
        "summary": torch.cuda.memory_summary(), "segments": segments(torch.cuda.memory_snapshot()),
    }


def buffer(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def allocations():
    note("start")
    held = {}
    for i in range(400):
        size = (i * 7919 % 97 + 1) * (4096 if i % 3 else 300_000)
        held[i] = buffer(size)
        if i % 5 == 4:
            del held[i - 3]
        if i == 200:
            note("middle")
            torch.cuda.reset_peak_memory_stats()
            for k in range(0, 150, 2):
                held.pop(k, None)
            note("after reset of peaks")
    note("full")
    torch.cuda.reset_accumulated_memory_stats()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = [buffer(3 * MIB), buffer(1000)]
    held[399].record_stream(side)
    note("second stream")
    del other
    try:
        buffer(1 << 46)
    except RuntimeError:
        pass
    else:
        raise AssertionError("no error")
    note("after a request that failed")
    held.clear()
    note("all freed")
    torch.cuda.empty_cache()
    note("empty")


def training():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.reset_peak_memory_stats()
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(20):
        x = torch.randn(64 + step, 256, device="cuda")
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    answers["losses"] = losses
    note("trained")


def snapshots():
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        torch.cuda.memory._dump_snapshot(file.name)
        with open(file.name, "rb") as dumped:
            found = pickle.load(dumped)
    whole = torch.cuda.memory._snapshot()
    answers["snapshot_keys"] = sorted(whole)
    answers["segment_keys"] = sorted(whole["segments"][0])
    answers["block_keys"] = sorted(whole["segments"][0]["blocks"][0])
    answers["dump_is_the_snapshot"] = segments(found["segments"]) == segments(whole["segments"])
    answers["traces"] = len(found["device_traces"])


torch.cuda.init()
allocations()
training()
snapshots()
with open(OUT, "w", encoding="utf-8") as out:
    json.dump(answers, out, indent=1)
