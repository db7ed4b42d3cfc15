#!/usr/bin/env python3
"""Records random programs of PyTorch's allocator: random_recording.py FOLDER [FIRST [COUNT]]

A program for each seed from FIRST (1) on, with settings that go with the seed, in a process of its own; its memory
snapshot, with the whole history, becomes FOLDER/SEED.pickle. `allocrig fidelity` must agree with each of them.
Needs a card of 16 GiB; 100 programs take about a minute."""
import os
import random
import subprocess
import sys
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


class Program:
    def __init__(self, torch, seed):
        self.torch, self.draw = torch, random.Random(seed)
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.blocks, self.pools, self.graphs = [], [], []
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
                    with self.torch.cuda.use_mem_pool(self.draw.choice(self.pools)):
                        self.blocks.append(self.request())
                else:
                    self.blocks.append(self.request())
            except self.torch.cuda.OutOfMemoryError:
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

    def run(self, operations):
        torch = self.torch
        others = (
            (0.05, self.use),
            (0.03, self.busy),
            (0.01, torch.cuda.synchronize),
            (0.008, torch.cuda.empty_cache),
            (0.006, self.capture),
            (0.004, lambda: self.pools.append(torch.cuda.MemPool())),
            (0.006, self.drop),
        )
        for _ in range(operations):
            chance = self.draw.random()
            for share, act in others:
                chance -= share
                if chance < 0:
                    act()
                    break
            else:
                held = sum(block.numel() for block in self.blocks)
                self.alloc() if self.draw.random() < (0.62 if held < 8 * self.most else 0.4) else self.free()


def record(folder, seed):
    """In this process."""
    import torch

    torch.cuda.init()
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

    def child(seed):
        environment = dict(os.environ, RANDOM_RECORDING="1", PYTORCH_CUDA_ALLOC_CONF=SETTINGS[seed % len(SETTINGS)])
        return seed, subprocess.run([sys.executable, __file__, folder, str(seed)], env=environment, check=False).returncode

    with ThreadPoolExecutor(8) as crew:
        failed = [seed for seed, status in crew.map(child, range(first, first + count)) if status]
    print(f"{count - len(failed)} recorded; failed: {failed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
