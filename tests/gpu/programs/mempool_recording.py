#!/usr/bin/env python3
"""Records what PyTorch does with torch.cuda.MemPool: mempool_recording.py FILE

FILE becomes JSON with a recording for each program and setting: the program as a trace, the segments in the order
made, and a row for each request and free (segment, offset, granted and reserved bytes after it), as in
tests/golden/data/oracles; also the counters at the end and the memory snapshot. Needs PyTorch 2.9 or later; takes
under 30 s."""
import base64
import gzip
import json
import os
import pickle
import subprocess
import sys

MIB = 1 << 20
BUSY_CYCLES = 1 << 26  # of torch.cuda._sleep: about 35 ms
CONFS = {"default": "", "expandable": "expandable_segments:True", "maxsplit": "max_split_size_mb:32"}


class Recorder:
    def __init__(self, torch, limit_mib):
        self.torch, self.limit = torch, limit_mib * MIB
        torch.cuda.init()
        if self.limit:
            torch.cuda.set_per_process_memory_fraction(self.limit / torch.cuda.mem_get_info()[1])
        torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.pools, self.kinds = {}, {}
        self.trace, self.rows, self.tensors = [], [], {}

    def totals(self):
        return self.torch.cuda.memory_allocated(), self.torch.cuda.memory_reserved()

    def row(self, pointer):
        self.rows.append([pointer, *self.totals()])

    def make(self, pool, use_on_oom=False, no_split=False):
        self.pools[pool] = self.torch.cuda.MemPool(use_on_oom=use_on_oom, no_split=no_split)
        words = (["use_on_oom"] if use_on_oom else []) + (["no_split"] if no_split else [])
        self.kinds[pool] = "+".join(words) or "plain"

    def alloc(self, block, mib, pool=0, stream=0, may_fail=False):
        torch, size, pointer = self.torch, int(mib * MIB), None
        keys = f",pool={pool},mempool={self.kinds[pool]}" if pool else ""
        self.trace.append(f"{'p' if may_fail else 'a'},{block},{size},{stream}{keys}")
        with torch.cuda.stream(self.streams[stream]):
            try:
                if pool:
                    with torch.cuda.use_mem_pool(self.pools[pool]):
                        self.tensors[block] = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    self.tensors[block] = torch.empty(size, dtype=torch.uint8, device="cuda")
                pointer = self.tensors[block].data_ptr()
            except torch.cuda.OutOfMemoryError:
                if not may_fail:
                    raise
        self.row(pointer)

    def probe(self, block, mib, pool=0, stream=0):
        self.alloc(block, mib, pool, stream, may_fail=True)

    def free(self, *blocks):
        for block in blocks:
            pointer = self.tensors.pop(block, None)
            if pointer is None:
                continue
            address = pointer.data_ptr()
            del pointer
            self.trace.append(f"f,{block}")
            self.row(address)

    def use(self, block, stream):
        self.tensors[block].record_stream(self.streams[stream])
        self.trace.append(f"u,{block},{stream}")

    def keep_busy(self, stream):
        with self.torch.cuda.stream(self.streams[stream]):
            self.torch.cuda._sleep(BUSY_CYCLES)
        self.trace.append(f"k,{stream},100000000")

    def sync(self):
        self.torch.cuda.synchronize()
        self.trace.append("s")

    def empty(self):
        self.torch.cuda.empty_cache()
        self.trace.append("c")

    def delete(self, pool):
        del self.pools[pool]
        self.trace.append(f"c,pool={pool},mempool={self.kinds[pool]}")


def live(r):
    """What a live pool reuses, what empty_cache() leaves it, and what its deletion releases."""
    r.make(1)
    r.make(2)
    r.alloc(0, 30, pool=1)
    r.alloc(1, 5, pool=1)
    r.alloc(2, 0.5, pool=1)
    r.alloc(3, 40)
    r.free(0, 1, 3)
    r.alloc(4, 25)  # not from pool 1
    r.alloc(5, 12, pool=1)  # from pool 1
    r.alloc(6, 30, pool=2)  # not from pool 1
    r.free(5, 6)
    r.alloc(20, 50)
    r.free(20)
    r.empty()  # releases the common pool alone
    r.alloc(7, 30, pool=1)  # still there
    r.alloc(8, 30, pool=2)
    r.free(7, 8)
    r.alloc(9, 60)
    r.free(9)
    r.delete(1)  # block 2 lives; the common pool keeps its 60 MiB
    r.alloc(10, 55)
    r.free(10)
    r.delete(2)
    r.alloc(11, 30)
    r.free(2)  # of the deleted pool
    r.alloc(12, 0.25)  # not from it
    r.empty()
    r.alloc(13, 0.25)
    r.free(4, 11, 12, 13)
    r.empty()


def oom(r):
    """Out of memory inside a pool, and outside with a pool that has cached memory."""
    r.make(1)
    r.alloc(0, 100)
    r.alloc(1, 60)
    r.free(1)  # 60 MiB are cached in the common pool
    r.probe(2, 70, pool=1)  # does the request in a pool release them?
    r.alloc(3, 30, pool=1)
    r.free(3)  # 30 MiB are cached in the live pool
    r.probe(4, 80)  # a request outside cannot have those
    r.probe(5, 101)
    r.free(2, 4, 5)
    r.alloc(6, 20, pool=1)
    r.free(6)
    r.delete(1)
    r.probe(7, 95)
    r.free(0, 7)
    r.empty()


def on_oom(r):
    """use_on_oom: requests outside are served from the pool before cached memory is released."""
    r.make(1, use_on_oom=True)
    r.make(2)
    r.alloc(0, 40, pool=1)
    r.alloc(1, 40, pool=2)
    r.alloc(2, 0.5, pool=1)
    r.free(0, 1, 2)
    r.alloc(3, 70)
    r.alloc(4, 30)
    r.free(4)  # 30 MiB cached in the common pool
    r.probe(5, 38)  # from pool 1, and the common pool keeps its 30
    r.alloc(6, 28)  # these
    r.free(6)
    r.probe(7, 45)  # too large for what is left of pool 1: the cached 30 are released
    r.free(5, 7)
    r.alloc(8, 36, pool=1)
    r.free(8)
    r.probe(9, 12)
    r.probe(10, 20)
    r.probe(11, 20)
    r.probe(12, 25)
    r.delete(1)
    r.probe(13, 30)
    r.free(3, 9, 10, 11, 12, 13)
    r.empty()


def no_split(r):
    r.make(1, no_split=True)
    r.alloc(0, 30, pool=1)
    r.free(0)
    r.alloc(1, 5, pool=1)  # the whole 30
    r.alloc(2, 5, pool=1)  # a segment of its own
    r.alloc(3, 0.25, pool=1)
    r.alloc(4, 0.25, pool=1)
    r.free(1, 3)
    r.alloc(5, 20, pool=1)
    r.alloc(6, 0.75, pool=1)
    r.alloc(7, 5)
    r.alloc(8, 5)
    r.free(2, 4, 5, 6, 7, 8)
    r.delete(1)
    r.empty()


def pending(r):
    """Blocks of a pool that other streams use: when are they free again?"""
    r.make(1)
    r.alloc(0, 12, pool=1)
    r.alloc(1, 14)
    r.keep_busy(1)
    r.use(0, 1)
    r.use(1, 1)
    r.free(0, 1)
    r.alloc(2, 12, pool=1)  # block 0 is pending
    r.sync()
    r.alloc(3, 12, pool=1)  # is it free for a request in a pool?
    r.alloc(4, 14)  # a request outside sees that the events are done
    r.alloc(5, 12, pool=1)
    r.free(2, 3, 4, 5)
    r.alloc(6, 12, pool=1, stream=1)
    r.keep_busy(2)
    r.use(6, 2)
    r.free(6)
    r.delete(1)  # waits for it
    r.alloc(7, 12)
    r.free(7)
    r.empty()


PROGRAMS = {"live": (live, 0), "oom": (oom, 201), "on_oom": (on_oom, 187), "no_split": (no_split, 0),
            "pending": (pending, 0)}


def record(name):
    import torch
    program, limit = PROGRAMS[name]
    recorder = Recorder(torch, limit)
    failed = ""
    try:
        program(recorder)
    except Exception as error:  # what was recorded until then is worth having
        failed = repr(error)
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    segments = [(e["addr"], e["size"], e["action"]) for e in snapshot["device_traces"][0]
                if e["action"] in ("segment_alloc", "segment_free", "segment_map", "segment_unmap")]
    wanted = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams",
              "reserved_bytes.all.peak", "segment.all.allocated", "segment.all.freed")
    return {"torch": torch.__version__, "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "limit": recorder.limit,
            "total": torch.cuda.mem_get_info()[1], "failed": failed, "trace": recorder.trace, "rows": recorder.rows,
            "segments": segments, "stats": {key: stats.get(key) for key in wanted},
            "snapshot": base64.b64encode(gzip.compress(pickle.dumps(snapshot))).decode()}


def main():
    if sys.argv[1] == "--record":
        print(json.dumps(record(sys.argv[2])))
        return
    result = {}
    for program in PROGRAMS:
        for name, conf in CONFS.items():
            environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
            done = subprocess.run([sys.executable, __file__, "--record", program], env=environment,
                                  capture_output=True, text=True, timeout=60, check=False)
            key = f"{program}.{name}"
            result[key] = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-2000:]}
            print(key, result[key]["failed"][:300] or "recorded", flush=True)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(result, file)


main()
