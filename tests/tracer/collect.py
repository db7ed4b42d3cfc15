#!/usr/bin/env python3
"""Writes what record_all.py recorded into recorded.tsv and limits.tsv: collect.py FOLDER [NAME..]

Rows of the same programs are replaced. Runs under limits are in the order of the limits, one row each.
"""
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def records(folder):
    for path in glob.glob(f"{folder}/*.json"):
        name, setting, *label = os.path.basename(path)[:-5].split(".")
        with open(path) as f:
            yield name, setting, ".".join(label), json.load(f)


def replace(name, programs, rows):
    path = f"{HERE}/{name}.tsv"
    with open(path) as f:
        kept = [line for line in f if line.split("\t")[0] not in programs]
    with open(path, "w") as f:
        f.writelines(kept + ["\t".join(map(str, r)) + "\n" for r in rows])


peaks, limits = {}, []
for name, setting, label, r in records(sys.argv[1]):
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    stats = r["stats"]
    if not label and r["outcome"] == "finished":
        program = peaks.setdefault(name, {})
        program[setting] = stats["reserved_bytes.all.peak"]
        if setting == "default":
            program["live"] = stats["allocated_bytes.all.peak"]
    elif label.startswith("limit") and r["outcome"] in ("finished", "out of memory"):
        limits.append((name, setting, r["limit"], r["outcome"], stats["num_alloc_retries"],
                       stats["reserved_bytes.all.peak"]))
replace("recorded", peaks, [(n, f"programs/{n}.py", "", "h200", p["live"], p["default"], p["expandable"])
                            for n, p in sorted(peaks.items())])
replace("limits", peaks, sorted(limits))
print(len(peaks), "programs,", len(limits), "runs under a limit")
