#!/usr/bin/env python3
"""Measures what pinned host memory costs, and records what PyTorch's pinned host cache does: pinned_recording.py FILE

FILE becomes JSON: `costs` (mean ns of cuMemHostAlloc and cuMemFreeHost by size, on an idle and on a busy card, and of
touching and registering memory), `waits` (whether a call waits for a kernel of 20 ms) and `recordings`: for each
setting of the cache a trace and, for each of its requests, the driver block that served it. Needs PyTorch 2.8 or later.
Takes about 40 s.

pinned_recording.py --programs FOLDER FIRST COUNT: other random programs, one for each seed from FIRST on, under the
settings of the environment, as files of tests/golden/data/pinned (test_pinned compares all that are there). No card is
needed with the stand-in of tests/cli/test_random.sh."""
import ctypes
import gzip
import json
import mmap
import os
import random
import re
import subprocess
import sys
import time

SIZES = [1 << k for k in range(9, 31, 1)]
POINT_S = 0.25  # for one size and one kind of call
BUSY_CYCLES = 1 << 26  # of torch.cuda._sleep: about 35 ms

SETTINGS = {
    "pinned": "",
    "pinned_reserve": "pinned_reserve_segment_size_mb:24",
    "pinned_register": "pinned_use_cuda_host_register:True,pinned_num_register_threads:4",
}


# ---- costs ----

def driver():
    library = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        begun = time.perf_counter_ns()
        result = getattr(library, name)(*arguments)
        took = time.perf_counter_ns() - begun
        if result:
            raise OSError(f"{name} returned {result}")
        return took

    return call


def alloc_free(call, size, count):
    """Times of `count` blocks that are held together, then freed in the order made."""
    pointers = [ctypes.c_void_p() for _ in range(count)]
    made = [call("cuMemHostAlloc", ctypes.byref(p), ctypes.c_size_t(size), 0) for p in pointers]
    freed = [call("cuMemFreeHost", p) for p in pointers]
    return made, freed


def register(call, size, count):
    touched, registered, unregistered = [], [], []
    for _ in range(count):
        memory = mmap.mmap(-1, max(size, 4096))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        begun = time.perf_counter_ns()
        for page in range(0, size, 4096):
            memory[page] = 0
        touched.append(time.perf_counter_ns() - begun)
        registered.append(call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), 0))
        unregistered.append(call("cuMemHostUnregister", ctypes.c_void_p(address)))
    return touched, registered, unregistered


def mean(values):
    return sum(values) // len(values)


def costs(torch):
    call, rows = driver(), []
    stream = torch.cuda.Stream()
    torch.zeros(1, device="cuda")
    for busy in (False, True):
        for size in SIZES:
            made, freed, begun = [], [], time.monotonic()
            hold = max(1, min(16, (1 << 30) // size))
            while time.monotonic() - begun < POINT_S and len(made) < 160:
                if busy:
                    torch.cuda.synchronize()
                    with torch.cuda.stream(stream):
                        torch.cuda._sleep(BUSY_CYCLES)
                one = alloc_free(call, size, hold)
                made += one[0]
                freed += one[1]
            rows.append({"busy": busy, "bytes": size, "count": len(made), "alloc_ns": mean(made), "free_ns": mean(freed),
                         "alloc_median_ns": sorted(made)[len(made) // 2], "free_median_ns": sorted(freed)[len(freed) // 2]})
    torch.cuda.synchronize()
    for size in SIZES[3::3]:
        count = max(1, min(20, (1 << 28) // size))
        touched, registered, unregistered = register(call, size, count)
        rows.append({"register": True, "bytes": size, "count": count, "touch_ns": mean(touched),
                     "register_ns": mean(registered), "unregister_ns": mean(unregistered)})
    return rows


def waits(torch):
    """The time of one call under a kernel, and how long that kernel still ran when the call began."""
    call, rows = driver(), []
    for size in (1 << 16, 1 << 22, 1 << 28):
        for name in ("alloc", "free"):
            pointer = ctypes.c_void_p()
            if name == "free":
                call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(size), 0)
            torch.cuda.synchronize()
            event = torch.cuda.Event()
            torch.cuda._sleep(BUSY_CYCLES * 2)
            event.record()
            if name == "alloc":
                took = call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(size), 0)
            else:
                took = call("cuMemFreeHost", pointer)
            rows.append({"call": name, "bytes": size, "ns": took, "kernel_done": event.query()})
            torch.cuda.synchronize()
            if name == "alloc":
                call("cuMemFreeHost", pointer)
    return rows


# ---- recordings ----

class Recorder:
    """A program of pinned memory as a trace, and what the cache did."""

    def __init__(self, torch):
        self.torch = torch
        self.trace, self.rows, self.live, self.ordinals = [], [], {}, {}
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.target = torch.empty(1 << 26, dtype=torch.uint8, device="cuda")
        self.next_id, self.made, self.busy = 0, 0, False

    def stats(self):
        stats = self.torch.cuda.host_memory_stats()
        return stats["num_host_alloc"], stats["num_host_free"], stats["allocated_bytes.current"]

    def alloc(self, size):
        tensor = self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)
        made, freed, held = self.stats()
        pointer = tensor.data_ptr()
        if made > self.made:
            self.ordinals[pointer] = made - 1
        self.made = made
        self.trace.append(f"a,{self.next_id},{size},space=pinned")
        self.rows.append(f"{self.next_id} {self.ordinals.get(pointer, -1)} {made} {freed} {held} {pointer}")
        self.live[self.next_id] = tensor
        self.next_id += 1
        return self.next_id - 1

    def use(self, block, stream):
        """A copy to the card. Its bytes are few: what counts is the event."""
        tensor = self.live[block]
        with self.torch.cuda.stream(self.streams[stream]):
            self.target[: min(tensor.numel(), 4096)].copy_(tensor[:4096], non_blocking=True)
        self.trace.append(f"u,{block},{stream}")

    def free(self, block):
        del self.live[block]
        self.trace.append(f"f,{block}")

    def keep_busy(self, stream):
        with self.torch.cuda.stream(self.streams[stream]):
            self.torch.cuda._sleep(BUSY_CYCLES)
        self.trace.append(f"k,{stream},100000000")

    def sync(self):
        self.torch.cuda.synchronize()
        self.trace.append("s")

    def empty(self):
        self.torch._C._host_emptyCache()
        self.trace.append("c,space=pinned")
        made, freed, held = self.stats()
        self.rows.append(f"empty - {made} {freed} {held} 0")


def random_program(recorder, seed):
    r = random.Random(seed)
    sizes = [1, 100, 512, 513, 4096, 5000, 65536, 65537, 1 << 20, (1 << 20) + 1, 3 << 20, 5000000, 8 << 20]
    for phase in range(24):
        busy = r.choice([(), (1,), (2,), (1, 2), (0, 1)])
        for stream in busy:
            recorder.keep_busy(stream)
        for _ in range(40):
            live = list(recorder.live)
            if len(live) > 12 or (live and r.random() < 0.45):
                block = r.choice(live)
                for stream in r.sample((0, 1, 2), r.choice([0, 1, 1, 2])):
                    recorder.use(block, stream)
                recorder.free(block)
            else:
                recorder.alloc(r.choice(sizes))
        recorder.sync()
        if phase % 7 == 6:
            recorder.empty()


def varied_program(recorder, seed):
    r = random.Random(seed)
    few = [1, 100, 512, 513, 4096, 5000, 65536, 65537, 1 << 20, (1 << 20) + 1, 3 << 20, 5000000, 8 << 20]
    top, most, share_of_few = r.choice([1 << 16, 1 << 22, 1 << 26]), r.choice([4, 12, 40]), r.choice([0, 0.5, 1])
    for _ in range(60):
        for stream in r.choice([(), (1,), (2,), (1, 2), (0, 1)]):
            recorder.keep_busy(stream)
        for _ in range(r.randint(5, 60)):
            live = list(recorder.live)
            if len(live) > most or (live and r.random() < 0.45):
                block = r.choice(live)
                for stream in r.sample((0, 1, 2), r.choice([0, 1, 1, 2, 3])):
                    recorder.use(block, stream)
                recorder.free(block)
            else:
                recorder.alloc(r.choice(few) if r.random() < share_of_few else int(top ** r.random()))
        recorder.sync()
        if r.random() < 0.1:
            recorder.empty()


def save(recorder, path):
    """The events with the rows of requests and releases behind them. OFFSET is far away outside of the segment."""
    conf, rows, first = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), iter(recorder.rows), None
    reserve_mb = re.search(r"pinned_reserve_segment_size_mb:(\d+)", conf)
    lines = ["spec torch-pinned" + (f":conf='{conf}'" if conf else "")]
    for event in recorder.trace:
        lines.append(event)
        if event[0] not in "ac":
            continue
        ordinal, *counts, pointer = next(rows).split()[1:]
        first = first or (int(pointer), int(event.split(",")[2]))
        inside = reserve_mb and first[1] <= int(reserve_mb[1]) << 20
        offset = int(pointer) - first[0] if event[0] == "a" else 0
        inside = inside and 0 <= offset < int(reserve_mb[1]) << 20
        lines.append(f"= {ordinal} {' '.join(counts)} {offset if inside or event[0] == 'c' else 1 << 40}")
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def programs(folder, first, count):
    import torch
    for seed in range(first, first + count):
        child = os.fork()
        if not child:
            try:
                recorder = Recorder(torch)
                varied_program(recorder, seed)
                save(recorder, f"{folder}/random_{seed}.gz")
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            print(f"{seed} failed")


def record(seed):
    import torch
    recorder = Recorder(torch)
    random_program(recorder, seed)
    return {"torch": torch.__version__, "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
            "trace": recorder.trace, "rows": recorder.rows,
            "stats": {k: v for k, v in torch.cuda.host_memory_stats().items() if "time" not in k}}


def main():
    if sys.argv[1] == "--programs":
        programs(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1] == "--record":
        print(json.dumps(record(int(sys.argv[2]))))
        return
    result = {"recordings": {}}
    for name, conf in SETTINGS.items():
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
        done = subprocess.run([sys.executable, __file__, "--record", "7"], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)
        result["recordings"][name] = json.loads(done.stdout) if done.returncode == 0 else done.stderr[-2000:]
    import torch
    result["card"] = torch.cuda.get_device_name()
    result["torch"] = torch.__version__
    for name, part in (("waits", waits), ("costs", costs)):
        try:
            result[name] = part(torch)
        except Exception as error:  # the other parts are still worth having
            result[name] = repr(error)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(result, file)
    print({name: len(r["rows"]) if isinstance(r, dict) else r for name, r in result["recordings"].items()},
          str(result["waits"])[:600], str(result["costs"])[:300], sep="\n")


main()
