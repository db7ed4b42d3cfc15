"""What the programs of this folder share: figures of card and allocator, the allocator's history, a small model."""

import ctypes
import gzip
import json
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

MIB = 1 << 20


def wait_for_turn():
    """Programs that are started together import PyTorch together; each runs when its file is there."""
    turn = os.environ.get("TURN", "")
    while turn and not os.path.exists(turn):
        time.sleep(0.02)


class Card:
    """Bytes of the card, as the driver reports them to the process, and as NVML reports them."""

    def __init__(self):
        self.nvml = self.handle = None
        try:
            import pynvml

            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
            self.handle, self.nvml = pynvml.nvmlDeviceGetHandleByUUID(uuid), pynvml
        except Exception as e:  # noqa: BLE001  the figures are left out, and the file says why
            self.failed = f"{type(e).__name__}: {e}"

    def figures(self):
        free, total = torch.cuda.mem_get_info()
        out = {"card_free": free, "card_total": total}
        if self.nvml:
            out["nvml_used"] = self.nvml.nvmlDeviceGetMemoryInfo(self.handle).used
            own = [p for p in self.nvml.nvmlDeviceGetComputeRunningProcesses(self.handle) if p.pid == os.getpid()]
            out["nvml_process"] = own[0].usedGpuMemory if own else None
        return out


KEEP = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current",
        "reserved_bytes.all.peak", "active_bytes.all.current", "requested_bytes.all.current",
        "inactive_split_bytes.all.current", "segment.all.current", "segment.large_pool.current",
        "segment.small_pool.current", "allocation.all.current", "num_alloc_retries", "num_ooms", "num_device_alloc",
        "num_device_free", "num_sync_all_streams")  # fmt: skip


def statistics():
    stats = torch.cuda.memory_stats()
    return {k: stats[k] for k in KEEP if k in stats}


def segments():
    try:
        return torch.cuda.memory_snapshot(include_traces=False)
    except TypeError:
        return torch.cuda.memory_snapshot()


def pool_of(segment):
    return tuple(segment.get("segment_pool_id", (0, 0)))


def by_pool(found):
    """Segments, reserved and allocated bytes of each pool."""
    out = {}
    for s in found:
        row = out.setdefault(pool_of(s), {"segments": 0, "reserved": 0, "allocated": 0, "active": 0})
        row["segments"] += 1
        row["reserved"] += s["total_size"]
        row["allocated"] += s["allocated_size"]
        row["active"] += s["active_size"]
    return out


def by_owner(found, owners):
    """Bytes of blocks of each owner: the owner's tensors name the blocks in which they lie."""
    starts = {}
    for name, tensors in owners.items():
        for t in tensors:
            if t is not None and t.is_cuda and t.untyped_storage().nbytes():
                starts[t.untyped_storage().data_ptr()] = name
    out = {}
    for s in found:
        address = s["address"]
        for b in s["blocks"]:
            if b["state"] != "inactive":
                name = starts.get(b.get("address", address), "other")
                out[name] = out.get(name, 0) + b["size"]
            address += b["size"]
    return out


class History:
    """The allocator's history as a Recorded CSV (workloads/trace/FORMAT.md), with marks."""

    def __init__(self, entries=2000000):
        self.marks, self.entries, self.begun = [], entries, time.time()
        torch.cuda.memory._record_memory_history(max_entries=entries, context=None)

    def mark(self, name):
        self.marks.append((time.time_ns() // 1000, name))

    def write(self, path, failed=""):
        """Writes PATH.csv.gz and PATH.json, and returns the number of events."""
        snapshot = torch.cuda.memory._snapshot()
        trace, last, rows, made = snapshot["device_traces"][0], 0, [], []
        pools = {s["address"]: list(pool_of(s)) for s in snapshot["segments"]}
        for i, e in enumerate(trace):
            last = max(last, e.get("time_us", 0))
            rows.append((last, 0, f"{e['action']},{e.get('addr', 0)},{e.get('size', 0)},{e.get('stream', 0)},{last}"))
            if e["action"] == "segment_alloc":
                made.append({"made_at_event": i, "address": e["addr"], "bytes": e["size"], "stream": e["stream"],
                             "freed_at_event": None, "pool": pools.get(e["addr"], [0, 0])})  # fmt: skip
            if e["action"] == "segment_free":
                for m in reversed(made):
                    if m["address"] == e["addr"] and m["freed_at_event"] is None:
                        m["freed_at_event"] = i
                        break
        rows += [(t, 1, f"mark,0,{i + 1},0,{t}") for i, (t, _) in enumerate(self.marks)]
        rows.sort(key=lambda r: r[:2])
        with gzip.open(path + ".csv.gz", "wt", compresslevel=9) as f:
            f.write("action,addr,size,stream,time_us\n")
            f.writelines(r[2] + "\n" for r in rows)
        sidecar = {**about(), "name": os.path.basename(path), "limit": 0, "failed": failed, "events": len(trace),
                   "seconds": round(time.time() - self.begun, 2), "marks": [name for _, name in self.marks],
                   "keys_of_events": sorted({k for e in trace[:200] for k in e}), "segments_made": made}  # fmt: skip
        with open(path + ".json", "w", encoding="utf-8") as f:
            json.dump(sidecar, f)
        return len(trace)

    def stop(self):
        torch.cuda.memory._record_memory_history(enabled=None)


def about():
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "card": torch.cuda.get_device_name(),
            "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "cudnn": torch.backends.cudnn.version()}  # fmt: skip


def nodes_of(graph):
    """The number of nodes of a captured graph by type (cudaGraphNodeType), or None without libcudart."""
    try:
        runtime = ctypes.CDLL("libcudart.so.13")
        raw, count = ctypes.c_void_p(graph.raw_cuda_graph()), ctypes.c_size_t(0)
        assert runtime.cudaGraphGetNodes(raw, None, ctypes.byref(count)) == 0
        nodes = (ctypes.c_void_p * count.value)()
        assert runtime.cudaGraphGetNodes(raw, nodes, ctypes.byref(count)) == 0
        out = {"all": count.value}
        for node in nodes:
            kind = ctypes.c_int(0)
            assert runtime.cudaGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) == 0
            name = {0: "kernel", 1: "memcpy", 2: "memset", 3: "host", 5: "empty"}.get(kind.value, str(kind.value))
            out[name] = out.get(name, 0) + 1
        return out
    except (OSError, AssertionError, AttributeError):
        return None


class Block(nn.Module):
    """A block of a transformer; the caller brings the attention over keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x, attend):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        split = [t.view(*t.shape[:-1], self.heads, self.size) for t in (q, k, v)]
        x = x + self.out(attend(*split).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, words=32000, width=1024, heads=16, layers=12, positions=2048):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(positions, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens, positions, attend):
        """`attend(layer)` gives the attention of that layer."""
        x = self.words(tokens) + self.positions(positions)
        for i, layer in enumerate(self.layers):
            x = layer(x, attend(i))
        return self.norm(x)


def causal(_):
    def attend(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    return attend
