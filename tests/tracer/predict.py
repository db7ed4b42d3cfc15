#!/usr/bin/env python3
"""Predicts programs that no card has run yet: predict.py OUT [--keep FOLDER] [--jobs N] NAME..

Appends to OUT.tsv the peaks and the smallest limits that suffice (safe) of each program (traced_blind.tsv), and to
OUT_limits.tsv what happens under up to four limits: 12, 35 and 70 % of the way from the live to the reserved peak under
the default settings, if that peak is more than 8 % above the live one (nearer, they would lie within a few segments),
and 50 % under expandable segments, if theirs is more than 2 % above it. The limits are what record_all.py takes as
RECORD_LIMITS.
"""
import argparse
import concurrent.futures as futures
import os
import sys

import compare

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("out")
p.add_argument("names", nargs="+")
p.add_argument("--keep", required=True, help="folder for the traces; they are not made again if they are there")
p.add_argument("--python", default=sys.executable)
p.add_argument("--jobs", type=int, default=1)
args = p.parse_args()
args.steps = 0
SHARES = {"default": (12, 35, 70), "expandable": (50,)}


def limits(live, reserved):
    """(setting, bytes), in multiples of 2 MiB."""
    for setting, shares in SHARES.items():
        if reserved[setting] > live * 1.08 or setting == "expandable" and reserved[setting] > live * 1.02:
            for share in shares:
                yield setting, (live + (reserved[setting] - live) * share // 100) >> 21 << 21


def predict(name):
    program = {"program": name, "file": f"programs/{name}.py", "arguments": "", "card": "h200"}
    path, note = compare.trace(program, args, args.keep)
    try:
        free = compare.replay(path, "h200", list(compare.SPECS.values()))
    except RuntimeError as e:
        return name, note, [name, "", "", "", "", "", str(e)[:200]], []
    live = free[0]["metrics"]["peak_granted_bytes"]
    reserved = {s: r["metrics"]["peak_reserved_bytes"] for s, r in zip(compare.SPECS, free)}
    safe = {s: compare.safe_limit(path, "h200", s, live, reserved[s]) for s in compare.SPECS}
    rows = list(limits(live, reserved)) if "exit status" not in note else []
    specs = [compare.under(b, s) for s, b in rows]
    runs = compare.replay(path, "h200", specs) if specs else []
    trials = [[name, s, b, "finished" if r["outcome"]["passed"] else "out of memory", r["metrics"]["retries"],
               r["metrics"]["peak_reserved_bytes"]] for (s, b), r in zip(rows, runs)]
    error = note if "exit status" in note else ""
    return name, note, [name, live, *reserved.values(), *safe.values(), error], trials


os.makedirs(args.keep, exist_ok=True)
with futures.ThreadPoolExecutor(args.jobs) as pool:
    for name, note, row, trials in pool.map(predict, args.names):
        print(name, note, *row[1:], flush=True)
        for suffix, rows in (("", [row]), ("_limits", trials)):
            with open(f"{args.out}{suffix}.tsv", "a") as f:
                f.writelines("\t".join(map(str, r)) + "\n" for r in rows)
