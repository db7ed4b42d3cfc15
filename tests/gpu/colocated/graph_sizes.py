#!/usr/bin/env python3
"""Captures CUDA graphs for eight batch sizes and measures what each takes: graph_sizes.py OUT.csv [options]

--pools shared: one pool, the largest size first; ascending: one pool, the smallest first; own: a pool for each size;
repeat: eight graphs of the size 8 in one pool. --warm: each size runs once before any is captured, so that kernels and
handles of libraries are loaded. A row for each graph: bytes of the card that were free before the capture, after the
capture, after the instantiation and after the first replay; allocated and reserved bytes; nodes of the graph.
"""

import argparse
import csv

import common
import torch
import torch.nn.functional as F

SIZES = (128, 64, 32, 16, 8, 4, 2, 1)
SEEN = 256


class Decoder:
    """Decoding with a fixed number of cached tokens for each sequence."""

    def __init__(self, layers):
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            self.model = common.Gpt(layers=layers).requires_grad_(False)
            self.cache = torch.zeros(layers, 2, SIZES[0], 16, SEEN, 64)
            self.tokens = torch.zeros(SIZES[0], dtype=torch.long)
        self.position = torch.full((SIZES[0],), SEEN - 1, dtype=torch.long, device="cuda")

    def run(self, size):
        def attention(layer):
            def attend(q, k, v):
                keys, values = self.cache[layer, 0, :size], self.cache[layer, 1, :size]
                keys[:, :, -1], values[:, :, -1] = k, v
                return F.scaled_dot_product_attention(q.unsqueeze(2), keys, values).squeeze(2)

            return attend

        return self.model.head(self.model(self.tokens[:size], self.position[:size], attention))


def state():
    torch.cuda.synchronize()
    return {"free": torch.cuda.mem_get_info()[0], "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved()}  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--pools", default="shared", choices=["shared", "ascending", "own", "repeat"])
    p.add_argument("--warm", action="store_true")
    options = p.parse_args()
    common.wait_for_turn()
    torch.cuda.init()
    history = common.History()
    begun = torch.cuda.mem_get_info()
    failed, rows, graphs, outputs = "", [], [], []
    fixed = {"layers": options.layers, "pools": options.pools, "warm": int(options.warm)}
    sizes = {"ascending": SIZES[::-1], "repeat": (8,) * 8}.get(options.pools, SIZES)

    def add(what, size, before, after, more=None):
        row = {**fixed, "what": what, "size": size, "free_before": before["free"],
               **{f"{k}_after": v for k, v in after.items()}}  # fmt: skip
        for kind in ("allocated", "reserved"):
            row[f"{kind}_delta"] = after[kind] - before[kind]
        row["outside_delta"] = before["free"] - after["free"] - row["reserved_delta"]
        rows.append({**row, **(more or {})})
        torch.cuda.nvtx.mark(f"decoder.{what.replace(' ', '-')}-{size}")

    with torch.no_grad():
        first = {"free": begun[0], "allocated": 0, "reserved": 0}
        decoder = Decoder(options.layers)
        now = state()
        add("model", 0, first, now)
        if options.warm:
            for size in sorted(set(sizes), reverse=True):
                before, _ = state(), decoder.run(size)
                add("eager", size, before, state())
            del _
            torch.cuda.empty_cache()
        shared = torch.cuda.graph_pool_handle()
        try:
            for size in sizes:
                before = state()
                graph = torch.cuda.CUDAGraph(keep_graph=True)
                pool = torch.cuda.graph_pool_handle() if options.pools == "own" else shared
                with torch.cuda.graph(graph, pool=pool):
                    outputs.append(decoder.run(size))
                captured = state()
                nodes = common.nodes_of(graph) or {}
                graph.instantiate()
                instantiated = state()
                graph.replay()
                replayed = state()
                graph.replay()
                graphs.append(graph)
                add("capture", size, before, captured, {f"nodes_{k}": v for k, v in nodes.items()})
                add("instantiate", size, captured, instantiated)
                add("first replay", size, instantiated, replayed)
                add("second replay", size, replayed, state())
        except Exception as e:  # noqa: BLE001  the file says which
            failed = f"{type(e).__name__}: {e}".replace("\n", " ")[:400]
            rows.append({**fixed, "what": "failed", "size": size, "failed": failed})
    keys = list(dict.fromkeys(k for row in rows for k in row))
    with open(options.out, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    try:
        history.write(options.out.removesuffix(".csv"), failed)
    except Exception as e:  # noqa: BLE001  after an error of the card
        print("no history:", e)
    print(options.out, failed or "finished", flush=True)


main()
