"""A policy of allocrig inside PyTorch:

    import allocrig.torch
    allocrig.torch.use("vmm")           # before anything is on a GPU

After it PyTorch takes its device memory from the policy. torch.cuda.memory_stats and what is made from it
(memory_allocated, memory_reserved, max_memory_allocated, memory_summary, reset_peak_memory_stats) and snapshots
(memory_snapshot, memory._snapshot, memory._dump_snapshot) answer as under PyTorch's own allocator. Under the policy
`torch` all statistics are exact; other policies give the figures that they have, and 0 for the others. A snapshot has
no history and no stack frames: `trace` records what the program requests."""
import os
import warnings

from . import _plugin
from ._plugin import figure, mark

__all__ = ["use", "figure", "mark"]

# The functions of PyTorch's pluggable allocator besides malloc and free.
HOOKS = {
    "set_record_stream_fn": "allocrig_record_stream",
    "set_reset_fn": "allocrig_empty_cache",
    "set_memory_fraction_fn": "allocrig_memory_fraction",
    "set_base_alloc_fn": "allocrig_base_alloc",
    "set_begin_allocate_to_pool": "allocrig_begin_pool",
    "set_end_allocate_to_pool_fn": "allocrig_end_pool",
    "set_release_pool": "allocrig_release_pool",
}

POOLS = ("all", "small_pool", "large_pool")
FIELDS = ("current", "peak", "allocated", "freed")
COUNTERS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
            "inactive_split_bytes", "requested_bytes")
SINGLE = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")
STATES = {0: "active_allocated", 1: "inactive", 2: "active_pending_free", 4: "inactive"}
UNMAPPED = 3
# PyTorch's small pool has blocks of up to 1 MiB in segments of 2 MiB, its large pool larger blocks only.
SMALL_BLOCK_BYTES, SMALL_SEGMENT_BYTES, LARGE_PAGE_BYTES = 1 << 20, 2 << 20, 20 << 20

_before_reset = {}  # by device: sums at the last reset of accumulated statistics
_used = []          # the policy in use


def use(policy=None, *, stats=None, trace=None, verbose=None):
    """Makes PyTorch take all of its device memory from `policy`, a spec (default: ALLOCRIG_POLICY, else "torch").
    `stats`: a file for figures at exit; `trace`: a file that records what the program requests; `verbose`: a few
    figures on standard error at exit. Once in a process, before anything is on a GPU."""
    import torch

    if _used:
        if policy is not None and policy != _used[0]:
            raise RuntimeError(f"allocrig.torch.use: the policy {_used[0]} is in use already")
        return
    _plugin.settings(policy, stats, trace, verbose)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(_plugin.path(), "allocrig_malloc", "allocrig_free")
    _plugin.library()
    inner = allocator.allocator()
    for setter, name in HOOKS.items():
        if hasattr(inner, setter):
            getattr(inner, setter)(_plugin.address(name))
    torch.cuda.memory.change_current_allocator(allocator)
    _used.append(policy or os.environ.get("ALLOCRIG_POLICY") or "torch")
    answer(torch)


def answer(torch):
    """Puts functions that know the policy in place of those that PyTorch's own allocator answers."""
    replaced = {
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetPeakMemoryStats": lambda device: _plugin.library().allocrig_reset_peaks(device),
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated,
        "_cuda_memorySnapshot": lambda *_, **__: snapshot(torch.cuda.device_count()),
        "_cuda_record_memory_history": no_history,
        "_cuda_record_memory_history_legacy": no_history,
        "_accelerator_getDeviceStats": memory_stats,
        "_accelerator_resetPeakStats": lambda device: _plugin.library().allocrig_reset_peaks(device),
        "_accelerator_resetAccumulatedStats": reset_accumulated,
    }
    for name, function in replaced.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)


def no_history(*_, **__):
    warnings.warn("allocrig: the history of memory is recorded by allocrig.torch.use(trace=FILE), not by PyTorch",
                  stacklevel=3)


# ---- statistics

def template():
    """All names, with 0."""
    found = {f"{counter}.{pool}.{field}": 0 for counter in COUNTERS for pool in POOLS for field in FIELDS}
    found.update((f"{counter}.{field}", 0) for counter in ("oversize_allocations", "oversize_segments")
                 for field in FIELDS)
    found.update((name, 0) for name in SINGLE)
    found["max_split_size"] = -1
    return found


def accumulates(name):
    return name.endswith((".allocated", ".freed")) or name in SINGLE


def memory_stats(device):
    """The nested dictionary of torch._C._cuda_memoryStats."""
    flat = template()
    flat.update(_plugin.statistics(device))
    for name, value in _before_reset.get(device, {}).items():
        flat[name] -= value
    nested = {}
    for name, value in flat.items():
        *folders, last = name.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return nested


def reset_accumulated(device):
    _before_reset[device] = {name: value for name, value in _plugin.statistics(device).items() if accumulates(name)}


# ---- snapshots

def snapshot(devices):
    """The dictionary of torch._C._cuda_memorySnapshot."""
    segments = [segment for device in range(devices) for segment in segments_of(device, _plugin.ranges(device))]
    return {"segments": segments, "device_traces": [[] for _ in range(devices)], "external_annotations": [],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "allocrig_policy": _used[0] if _used else ""}}


def is_small_when_free(segment):
    """Free memory does not tell its pool. PyTorch's small pool has segments of 2 MiB and maps pages of 2 MiB; its large
    pool maps 20 MiB at a time."""
    if segment["is_expandable"]:
        return segment["total_size"] % LARGE_PAGE_BYTES != 0
    return segment["total_size"] <= SMALL_SEGMENT_BYTES


def segments_of(device, ranges):
    """Ranges as PyTorch's segments; of an expandable one each run of memory is a segment."""
    expandable = {one.segment_address for one in ranges if one.state == UNMAPPED}
    segments, last = [], None
    for one in ranges:
        if one.state == UNMAPPED:
            last = None
            continue
        if last is None or last != one.segment_address:
            segments.append({"device": device, "address": one.address, "total_size": 0, "allocated_size": 0,
                             "active_size": 0, "requested_size": 0, "stream": one.stream or 0,
                             "segment_type": "large", "segment_pool_id": tuple(one.pool),
                             "is_expandable": one.segment_address in expandable, "frames": [], "blocks": []})
            last = one.segment_address
        segment, state = segments[-1], STATES[one.state]
        active = state.startswith("active")
        segment["total_size"] += one.bytes
        segment["allocated_size"] += one.bytes if state == "active_allocated" else 0
        segment["active_size"] += one.bytes if active else 0
        segment["requested_size"] += one.requested_bytes if active else 0
        segment["blocks"].append({"address": one.address, "size": one.bytes, "requested_size": one.requested_bytes,
                                  "state": state, "frames": []})
    for segment in segments:
        sizes = [block["size"] for block in segment["blocks"] if block["state"].startswith("active")]
        if max(sizes) <= SMALL_BLOCK_BYTES if sizes else is_small_when_free(segment):
            segment["segment_type"] = "small"
    return segments
