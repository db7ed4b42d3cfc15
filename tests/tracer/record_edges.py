#!/usr/bin/env python3
"""Runs programs on a card at the limits where a trace says that they just finish and just fail.

    record_edges.py PREDICTED.tsv OUT [--seconds N] [--jobs N] [--first PROGRAM]..

PREDICTED.tsv has program, setting, limit, outcome, retries, reserved and place. Of each program and setting the runs at
the places `safe` (the smallest limit that suffices) and `below` (2 MiB less) come first. Where the card fails at `safe`,
the limit 2 % above follows; where it finishes at `below`, the limit 2 % below. OUT.tsv has what the card did, one row a
run.
"""
import argparse
import concurrent.futures as futures
import json
import os
import subprocess
import sys
import tempfile
import time

import under_limits

HERE = os.path.dirname(os.path.abspath(__file__))
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("predicted")
p.add_argument("out")
p.add_argument("--seconds", type=float, default=480)
p.add_argument("--jobs", type=int, default=10)
p.add_argument("--first", action="append", default=[], help="a program that takes long")
args = p.parse_args()
folder = tempfile.mkdtemp()
begin = time.time()
edges = {}
for r in under_limits.table(args.predicted):
    edges.setdefault((r["program"], r["setting"]), {})[r["place"]] = int(r["limit"])


def run(program, setting, limit):
    """(outcome, retries, reserved) on the card, or None if there is no time or no record."""
    left = args.seconds - (time.time() - begin)
    if left < 8:
        return None
    base = f"{folder}/{program}.{setting}.{limit}"
    env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True" if setting == "expandable" else "",
               TORCHINDUCTOR_CACHE_DIR=base + ".inductor", TRITON_CACHE_DIR=base + ".triton")
    try:
        subprocess.run([sys.executable, HERE + "/record_one.py", base, f"{HERE}/programs/{program}.py", "--limit", str(limit)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, timeout=left)
        with open(base + ".json") as f:
            r = json.load(f)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return r["outcome"], r["stats"]["num_alloc_retries"], r["stats"]["reserved_bytes.all.peak"]


def try_place(key, place):
    """Runs one place of a program's setting, and returns the place that must be tried for its outcome, if any."""
    limit = edges[key].get(place)
    result = run(*key, limit) if limit else None
    if result:
        with open(args.out, "a") as f:
            print(*key, limit, *result, place, sep="\t", file=f)
        print(f"{time.time() - begin:4.0f}s", *key, place, *result, flush=True)
        return {("safe", "out of memory"): "1.02", ("below", "finished"): "0.98"}.get((place, result[0]))
    return None


keys = sorted(edges, key=lambda k: (k[0] not in args.first, k))
with futures.ThreadPoolExecutor(args.jobs) as pool:
    todo = [(k, place) for k in keys for place in ("below", "safe")]
    while todo:
        todo = [(k, more) for (k, _), more in zip(todo, pool.map(lambda a: try_place(*a), todo)) if more]
