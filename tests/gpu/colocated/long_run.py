#!/usr/bin/env python3
"""Ten thousand steps of a program whose shapes vary, with the allocator's figures: long_run.py OUT PROGRAM [options]

PROGRAM is varlen (a transformer, sequences packed to a budget, evaluation and checkpoints), moe (experts with routing
that depends on the data) or unet (images of varied size, batches fetched on a side stream), or one of
long_programs.py. OUT.csv has a row for each --every steps: step, seconds, allocated and reserved bytes now, their peaks
since the last row, inactive bytes of split segments, segments, retries, driver allocations and frees. OUT.first.csv.gz
and .json are the history of the first --history steps with a mark after each, OUT.last.* the history of the --last ones
(default: as many), OUT.end.pickle.gz the snapshot at the end.
"""

import argparse
import csv
import gzip
import json
import pickle
import random
import time

import common
import long_programs
import torch
import torch.nn as nn
import torch.nn.functional as F

FIELDS = {"allocated": "allocated_bytes.all.current", "reserved": "reserved_bytes.all.current",
          "allocated_peak": "allocated_bytes.all.peak", "reserved_peak": "reserved_bytes.all.peak",
          "inactive_split": "inactive_split_bytes.all.current", "segments": "segment.all.current",
          "retries": "num_alloc_retries", "driver_allocs": "num_device_alloc",
          "driver_frees": "num_device_free"}  # fmt: skip


class Varlen:
    """Sequences with lengths of a heavy tail, padded to the longest, as many as a budget of tokens admits."""

    def __init__(self):
        self.model = common.Gpt(words=8000, width=512, heads=8, layers=4).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def batch(self, budget):
        lengths = []
        while True:
            n = min(1024, max(16, int(random.lognormvariate(5.0, 0.8))))
            if max([n, *lengths]) * (len(lengths) + 1) > budget:
                break
            lengths.append(n)
        tokens = torch.zeros(max(1, len(lengths)), max(lengths or [budget]), dtype=torch.long)
        return tokens.random_(8000).cuda(non_blocking=True)

    def loss(self, tokens):
        with torch.autocast("cuda", torch.bfloat16):
            hidden = self.model(tokens, torch.arange(tokens.shape[1], device="cuda"), common.causal)
            logits = self.model.head(hidden)
        return F.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())

    def step(self, i):
        self.loss(self.batch(4096)).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if i % 40 == 39:
            with torch.no_grad():
                for _ in range(2):
                    self.loss(self.batch(8192)).item()
        if i % 50 == 49:
            saved = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
            self.saved = {k: v.cpu() for k, v in saved.items()}


class Moe:
    """Four layers of eight experts; each token goes to two of them, so every expert's share varies."""

    def __init__(self):
        width, inner = 256, 1024
        self.layers = nn.ModuleList(
            nn.ModuleDict({"gate": nn.Linear(width, 8), "norm": nn.LayerNorm(width), "experts": nn.ModuleList(
                nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)) for _ in range(8))})
            for _ in range(4)).cuda()  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.layers.parameters(), lr=1e-4, fused=True)

    def step(self, _):
        x = torch.randn(random.randrange(1000, 9000), 256, device="cuda")
        start = x
        for layer in self.layers:
            y = layer["norm"](x)
            scores = layer["gate"](y) + torch.randn(8, device="cuda")
            weight, chosen = scores.softmax(-1).topk(2, -1)
            out = torch.zeros_like(x)
            for e, expert in enumerate(layer["experts"]):
                rows, place = torch.where(chosen == e)
                if rows.numel():
                    out = out.index_add(0, rows, expert(y[rows]) * weight[rows, place, None])
            x = x + out
        (x - start.roll(1, 0)).pow(2).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Unet:
    """Two levels down and up; sizes of images vary, and the next batch is copied on a side stream."""

    def __init__(self):
        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU())  # fmt: skip

        self.down = nn.ModuleList([pair(3, 32), pair(32, 64), pair(64, 128)]).cuda()
        self.up = nn.ModuleList([pair(192, 64), pair(96, 32)]).cuda()
        self.out = nn.Conv2d(32, 3, 1).cuda()
        self.model = nn.ModuleList([self.down, self.up, self.out])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.side, self.next = torch.cuda.Stream(), None
        self.fetch()

    def fetch(self):
        high, wide = (4 * random.randrange(12, 40) for _ in range(2))
        images = torch.empty(random.choice([4, 8, 12]), 3, high, wide, pin_memory=True).normal_()
        with torch.cuda.stream(self.side):
            self.next = images.cuda(non_blocking=True)

    def step(self, _):
        torch.cuda.current_stream().wait_stream(self.side)
        images = self.next
        images.record_stream(torch.cuda.current_stream())
        self.fetch()
        with torch.autocast("cuda", torch.bfloat16):
            a = self.down[0](images + 0.1 * torch.randn_like(images))
            b = self.down[1](F.avg_pool2d(a, 2))
            c = F.interpolate(self.down[2](F.avg_pool2d(b, 2)), scale_factor=2.0)
            d = F.interpolate(self.up[0](torch.cat([c, b], 1)), scale_factor=2.0)
            loss = F.mse_loss(self.out(self.up[1](torch.cat([d, a], 1))).float(), images)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


PROGRAMS = {"varlen": Varlen, "moe": Moe, "unet": Unet, **long_programs.PROGRAMS}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("program", choices=PROGRAMS)
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--every", type=int, default=10)
    p.add_argument("--history", type=int, default=100)
    p.add_argument("--last", type=int, default=-1)
    p.add_argument("--until", type=float, default=0, help="stop at this time, in seconds since 1970")
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    common.wait_for_turn()
    torch.cuda.init()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    history, begun, rows = common.History(), time.time(), []
    last = options.history if options.last < 0 else options.last
    program = PROGRAMS[options.program]()
    failed, i = "", -1
    torch.cuda.reset_peak_memory_stats()
    try:
        for i in range(options.steps):
            program.step(i)
            if history:
                torch.cuda.synchronize()
                history.mark(str(i + 1))
            if history and i + 1 == options.history:
                history.write(options.out + ".first")
                history.stop()
                history = None
            if last and i + 1 == options.steps - last:
                history = common.History()
            if (i + 1) % options.every == 0:
                stats = torch.cuda.memory_stats()
                rows.append([i + 1, round(time.time() - begun, 3), *(stats.get(k, 0) for k in FIELDS.values())])
                torch.cuda.reset_peak_memory_stats()
                if options.until and time.time() > options.until:
                    failed = "time is over"
                    break
    except Exception as e:  # noqa: BLE001  the file says which
        failed = f"{type(e).__name__}: {e}"[:600]
    torch.cuda.synchronize()
    with open(options.out + ".csv", "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["step", "seconds", *FIELDS])
        writer.writerows(rows)
    if history:
        history.write(options.out + ".last", failed)
    with gzip.open(options.out + ".end.pickle.gz", "wb") as f:
        snapshot = torch.cuda.memory._snapshot()
        snapshot["device_traces"] = []
        pickle.dump(snapshot, f)
    result = {**common.about(), "options": vars(options), "steps": i + 1, "failed": failed,
              "seconds": round(time.time() - begun, 2), "stats": common.statistics()}  # fmt: skip
    with open(options.out + ".run.json", "w", encoding="utf-8") as f:
        json.dump(result, f)
    print(options.out, "steps", i + 1, failed or "finished", result["seconds"], "s", flush=True)


main()
