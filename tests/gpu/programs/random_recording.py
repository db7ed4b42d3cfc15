#!/usr/bin/env python3
"""Records random programs of PyTorch's allocator: random_recording.py FOLDER [FIRST [COUNT]]

A program for each seed from FIRST (1) on, with settings that go with the seed, in a process of its own; its memory
snapshot, with the whole history, becomes FOLDER/SEED.pickle. `allocrig fidelity` must agree with each of them. Seeds
above 100 have more settings and operations, and FOLDER/SEED.log says when the program did what its snapshot does not
hold: limits, releases of the cache, pools, captures. Seeds above 1000 add what training and serving do: steps, threads,
caches that grow, snapshots in the middle, stacks.
A program says what it changes in annotations (workloads/trace/FORMAT.md, Changes). Needs a card of 16 GiB, or the
stand-in of tests/cli/test_random.sh: with STAND_IN set, all programs run in one process, one after another. 100 programs
take about a minute."""
import os
import random
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

MIB = 1 << 20
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,64:4,256:2,>:1]",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.5,max_split_size_mb:32",
    "max_split_size_mb:32,max_non_split_rounding_mb:64",
    "expandable_segments:True,garbage_collection_threshold:0.7",
    "expandable_segments:True,max_split_size_mb:48,roundup_power2_divisions:8",
    "large_segment_size_mb:40",
    "per_process_memory_fraction:0.015",
)


MORE_SETTINGS = (
    "max_split_size_mb:20",
    "max_split_size_mb:40,max_non_split_rounding_mb:200",
    "roundup_power2_divisions:16,garbage_collection_threshold:0.8",
    "roundup_power2_divisions:[512:4,>:2],expandable_segments:True",
    "garbage_collection_threshold:0.9,expandable_segments:True,max_split_size_mb:100",
    "large_segment_size_mb:64,max_split_size_mb:64",
    "large_segment_size_mb:30,expandable_segments:True",
    "per_process_memory_fraction:0.012,garbage_collection_threshold:0.7",
    "per_process_memory_fraction:0.012,expandable_segments:True",
    "garbage_collection_threshold:0.3",
    "graph_capture_record_stream_reuse:True,expandable_segments:True",
    "release_lock_on_cudamalloc:True,pinned_use_background_threads:True",
    "",
)


RESET = ("max_split_size_mb", "roundup_power2_divisions", "garbage_collection_threshold")


def merged(old, new):
    """The settings in force after `new` was set: what it does not name stays, but for RESET."""

    def pairs(text):
        return dict(piece.split(":", 1) for piece in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text))

    kept = {key: value for key, value in pairs(old).items() if key not in RESET}
    return ",".join(f"{key}:{value}" for key, value in {**kept, **pairs(new)}.items())


class Program:
    def __init__(self, torch, seed):
        self.torch, self.draw = torch, random.Random(seed)
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.blocks, self.pools, self.graphs, self.outer = [], [], [], None
        self.most = self.draw.choice((8, 60, 300)) * MIB
        self.repeated = [self.size() for _ in range(6)]

    def size(self):
        kind = self.draw.random()
        if kind < 0.35:
            return self.draw.randint(1, MIB)
        if kind < 0.7:
            return self.draw.randint(MIB, min(self.most, 12 * MIB))
        return self.draw.randint(min(self.most, 10 * MIB), self.most)

    def request(self):
        size = self.draw.choice(self.repeated) if self.draw.random() < 0.5 else self.size()
        return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")

    def alloc(self):
        with self.torch.cuda.stream(self.draw.choice(self.streams + self.streams[:1] * 3)):
            try:
                if self.pools and self.draw.random() < 0.15:
                    self.outer = self.draw.choice(self.pools)
                    with self.torch.cuda.use_mem_pool(self.outer):
                        self.blocks.append(self.request())
                    self.outer = None
                else:
                    self.blocks.append(self.request())
            except self.torch.cuda.OutOfMemoryError:
                self.outer = None
                self.free(len(self.blocks) // 2)

    def free(self, count=1):
        for _ in range(min(count, len(self.blocks))):
            last = len(self.blocks) - 1
            del self.blocks[last if self.draw.random() < 0.4 else self.draw.randint(0, last)]

    def use(self):
        if self.blocks:
            self.draw.choice(self.blocks).record_stream(self.draw.choice(self.streams[1:]))

    def busy(self):
        with self.torch.cuda.stream(self.draw.choice(self.streams)):
            self.torch.cuda._sleep(1 << self.draw.randint(14, 22))

    def capture(self):
        graph, held = self.torch.cuda.CUDAGraph(), []
        self.torch.cuda.synchronize()
        pool = self.draw.choice(self.graphs)[0].pool() if self.graphs and self.draw.random() < 0.5 else None
        try:
            with self.torch.cuda.graph(graph, pool=pool):
                for _ in range(self.draw.randint(1, 12)):
                    held.append(self.torch.zeros(self.draw.choice(self.repeated), dtype=self.torch.uint8, device="cuda"))
                    if len(held) > 1 and self.draw.random() < 0.5:
                        del held[self.draw.randint(0, len(held) - 1)]
        except self.torch.cuda.OutOfMemoryError:
            return
        self.graphs.append((graph, held))

    def drop(self):
        if self.graphs and self.draw.random() < 0.5:
            del self.graphs[self.draw.randint(0, len(self.graphs) - 1)]
        elif self.pools:
            del self.pools[self.draw.randint(0, len(self.pools) - 1)]

    def operations(self):
        torch = self.torch
        return (
            (0.05, self.use),
            (0.03, self.busy),
            (0.01, torch.cuda.synchronize),
            (0.008, torch.cuda.empty_cache),
            (0.006, self.capture),
            (0.004, lambda: self.pools.append(torch.cuda.MemPool())),
            (0.006, self.drop),
        )

    def run(self, count):
        others = self.operations()
        for _ in range(count):
            chance = self.draw.random()
            for share, act in others:
                chance -= share
                if chance < 0:
                    act()
                    break
            else:
                held = sum(block.numel() for block in self.blocks)
                self.alloc() if self.draw.random() < (0.62 if held < 8 * self.most else 0.4) else self.free()


class WiderProgram(Program):
    """More operations: pools in pools, pools with options, sizes near the limits of the rules, uses by other streams
    when memory is short, and changed limits (seeds 0 of 4) or settings (seeds 5 of 10) in the middle."""

    def __init__(self, torch, seed, log):
        super().__init__(torch, seed)
        self.seed, self.out = seed, log
        self.conf, self.limit_bytes = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), 0

    def run(self, count):
        try:
            super().run(count)
        except (RuntimeError, ValueError) as error:  # what PyTorch does not allow: the history ends here
            self.log("stopped", error)

    def log(self, *words):
        print(int(time.time() * 1e6), *words, file=self.out)

    def size(self):
        if self.draw.random() > 0.2:
            return super().size()
        edge = self.draw.choice((1, 512, 1024, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 64 * MIB))
        return max(1, edge + self.draw.choice((-513, -512, -1, 0, 1, 511, 512, 513)))

    def request(self):
        others = [pool for pool in self.pools if pool is not self.outer]
        if others and self.draw.random() < 0.05:  # a pool in itself is an error
            with self.torch.cuda.use_mem_pool(self.draw.choice(others)):
                return super().request()
        return super().request()

    def make_pool(self):
        options = self.draw.choice(({}, {"use_on_oom": True}, {"no_split": True}))
        self.pools.append(self.torch.cuda.MemPool(**options))
        self.log("pool", self.pools[-1].id, options)

    def capture(self):
        self.log("capture")
        super().capture()
        self.log("captured", self.graphs[-1][0].pool() if self.graphs else "-")

    def drop(self):
        self.log("drop", len(self.graphs), len(self.pools))
        super().drop()

    def empty_cache(self):
        self.log("empty_cache")
        self.torch.cuda.empty_cache()

    def crowd(self):
        """Blocks in use by other streams that are busy, then a large request."""
        for stream in self.streams[1:]:
            with self.torch.cuda.stream(stream):
                self.torch.cuda._sleep(1 << 21)
        for block in self.draw.sample(self.blocks, min(6, len(self.blocks))):
            block.record_stream(self.draw.choice(self.streams[1:]))
        self.free(8)
        self.alloc()

    def told(self, text):
        return self.torch.profiler.record_function(f"allocator {text}")

    def set_limit(self, limit):
        total = self.torch.cuda.mem_get_info()[1]
        self.limit_bytes = int(limit / total * total)
        self.log("limit", limit)
        with self.told(f"limit {self.limit_bytes}"):
            self.torch.cuda.set_per_process_memory_fraction(limit / total)

    def change(self):
        if self.seed % 4 == 0:
            self.set_limit(self.draw.choice((1000, 1600, 2400)) * MIB)
        elif self.seed % 10 == 5:
            settings = self.draw.choice(("max_split_size_mb:80", "roundup_power2_divisions:4",
                                         "garbage_collection_threshold:0.5", "expandable_segments:True",
                                         "expandable_segments:False"))
            self.log("settings", settings)
            with self.told(f"settings {self.conf} -> {settings}"):
                self.torch.cuda.memory._set_allocator_settings(settings)
            self.conf = merged(self.conf, settings)

    def operations(self):
        return (
            (0.06, self.use),
            (0.03, self.busy),
            (0.01, self.torch.cuda.synchronize),
            (0.008, self.empty_cache),
            (0.006, self.capture),
            (0.006, self.make_pool),
            (0.006, self.drop),
            (0.008, self.crowd),
            (0.002, self.change),
        )


class UserProgram(WiderProgram):
    """Steps of a training program with batches of several sizes, a cache that grows by copies, requests of other threads,
    memory without a tensor, snapshots in the middle, a history that begins anew."""

    def __init__(self, torch, seed, log):
        super().__init__(torch, seed, log)
        self.layers = [self.size() // 2 + 1 for _ in range(self.draw.randint(3, 8))]
        self.cache, self.raw = None, []

    def tensor(self, size):
        return self.torch.empty(int(size), dtype=self.torch.uint8, device="cuda")

    def guarded(self, act):
        try:
            act()
        except self.torch.cuda.OutOfMemoryError:
            self.cache = None
            self.free(len(self.blocks) // 2)

    def step(self):
        def run():
            share, saved = self.draw.choice((1, 1, 0.5, 0.75, 1.3)), []
            for layer in self.layers:
                scratch = self.tensor(layer * share / 3 + 1)
                saved.append(self.tensor(layer * share + 1))
                del scratch
            while saved:
                gradient = self.tensor(saved[-1].numel())
                saved.pop()
                del gradient

        self.guarded(run)

    def grow(self):
        def run():
            size = self.cache.numel() + self.draw.choice((MIB // 2, MIB, 3 * MIB)) if self.cache is not None else MIB
            longer = self.tensor(size)
            if self.cache is not None:
                longer[: self.cache.numel()].copy_(self.cache)
            self.cache = longer if size < 96 * MIB else None

        self.guarded(run)

    def thread(self):
        def run():
            with self.torch.cuda.stream(self.draw.choice(self.streams)):
                for _ in range(self.draw.randint(1, 6)):
                    self.guarded(lambda: self.blocks.append(self.tensor(self.draw.choice(self.repeated))))

        other = threading.Thread(target=run)
        other.start()
        other.join()

    def take_raw(self):
        if self.raw and self.draw.random() < 0.5:
            self.torch.cuda.caching_allocator_delete(self.raw.pop())
        else:
            self.guarded(lambda: self.raw.append(self.torch.cuda.caching_allocator_alloc(self.size())))

    def look(self):
        if self.seed % 5 == 2 and self.draw.random() < 0.2:
            self.log("history anew")
            self.torch.cuda.memory._record_memory_history(enabled=None)
            self.torch.cuda.memory._record_memory_history(max_entries=1000000, context="all", stacks="python")
        else:
            self.torch.cuda.memory._snapshot()

    def operations(self):
        return super().operations() + (
            (0.03, self.step),
            (0.03, self.grow),
            (0.01, self.thread),
            (0.01, self.take_raw),
            (0.002, self.look),
        )


def record_wider(torch, folder, seed):
    with open(f"{folder}/{seed}.log", "w") as log:
        program = (UserProgram if seed > 1000 else WiderProgram)(torch, seed, log)
        program.log("conf", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
        if seed % 3 == 0:
            program.set_limit(1600 * MIB)
        if seed % 7 == 3:
            program.run(300)  # the history begins in the middle
        torch.cuda.memory._record_memory_history(max_entries=2000 if seed % 7 == 5 else 1000000, context=None)
        if program.limit_bytes:
            with program.told(f"limit {program.limit_bytes}"):
                pass
        program.run(1500)
        if seed % 2:
            program.log("end")
            program = None
        torch.cuda.memory._dump_snapshot(f"{folder}/{seed}.pickle")


def record(folder, seed):
    """In this process."""
    import torch

    torch.cuda.init()
    if seed > 100:
        return record_wider(torch, folder, seed)
    if "per_process" not in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") and seed % 3 == 0:
        torch.cuda.set_per_process_memory_fraction(1600 * MIB / torch.cuda.mem_get_info()[1])
    torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)
    Program(torch, seed).run(1500)
    torch.cuda.memory._dump_snapshot(f"{folder}/{seed}.pickle")


def main():
    folder, first, count = sys.argv[1], *map(int, (sys.argv[2:] + ["1", "100"][len(sys.argv) - 2:])[:2])
    if os.environ.get("RANDOM_RECORDING"):
        return record(folder, first)
    os.makedirs(folder, exist_ok=True)

    def conf_of(seed):
        settings = SETTINGS + MORE_SETTINGS if seed > 1000 else MORE_SETTINGS if seed > 100 else SETTINGS
        return settings[seed % len(settings)]

    def child(seed):
        environment = dict(os.environ, RANDOM_RECORDING="1", PYTORCH_CUDA_ALLOC_CONF=conf_of(seed))
        return seed, subprocess.run([sys.executable, __file__, folder, str(seed)], env=environment, check=False).returncode

    def fork(seed):
        process = os.fork()
        if process:
            return seed, os.waitpid(process, 0)[1]
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf_of(seed)
        record(folder, seed)
        os._exit(0)

    if os.environ.get("STAND_IN"):
        import torch  # noqa: F401: once for all

        results = [fork(seed) for seed in range(first, first + count)]
    else:
        with ThreadPoolExecutor(8) as crew:
            results = list(crew.map(child, range(first, first + count)))
    failed = [seed for seed, status in results if status]
    print(f"{count - len(failed)} recorded; failed: {failed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
