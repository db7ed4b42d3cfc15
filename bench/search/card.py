#!/usr/bin/env python3
"""Runs two policies in turn on a device and prints the interval of their difference.

    card.py -d DEVICE -a SPEC -b SPEC [--pairs N] [--seconds N] [-o CSV] WORKLOAD:CAPACITY..

Each pair is a run of `a` and one of `b`, at the capacity in MiB; the order changes from pair to pair. A row of the CSV
is one run, without the metrics that take time at each event. The interval is that of the median of the ratio b / a of a
pair, by the signs (at least 95 %). Exit status: 0 done, 2 bad usage or input.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
FIELDS = ("workload", "capacity_mib", "pair", "policy", "passed", "steady_step_ns", "device_time_ns", "driver_time_ns", "driver_calls", "peak_physical_bytes")


def run(policy, workload, device, capacity):
    words = [ALLOCRIG, "run", "-p", policy, "-w", workload, "-d", f"{device}{',' if ':' in device else ':'}capacity={capacity}MiB", "--reps", "1", "--metrics", "none", "--json", "-"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode > 1:
        sys.exit(f"card.py: {done.stderr.strip()[-300:]}")
    found = json.loads(done.stdout)["runs"][0]
    return {**{f: found["metrics"].get(f) for f in FIELDS}, "passed": found["outcome"]["passed"], "policy": policy, "workload": workload, "capacity_mib": capacity}


def interval(ratios):
    """The median and the order statistics between which it lies, from the binomial distribution."""
    ratios = sorted(ratios)
    n, low = len(ratios), 0
    while low + 1 < n / 2 and 2 * sum(math.comb(n, k) for k in range(low + 2)) / 2**n <= 0.05:
        low += 1
    middle = (ratios[(n - 1) // 2] + ratios[n // 2]) / 2
    return middle, ratios[low], ratios[n - 1 - low]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default="cuda")
    p.add_argument("-a", required=True)
    p.add_argument("-b", required=True)
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--seconds", type=float, default=1e9, help="no new pair after this time")
    p.add_argument("-o", "--output")
    p.add_argument("workloads", nargs="+", metavar="WORKLOAD:CAPACITY")
    args = p.parse_args()
    begin, rows = time.time(), []
    cells = [w.rsplit(":", 1) for w in args.workloads]
    for pair in range(args.pairs):
        for workload, capacity in cells:
            if time.time() - begin > args.seconds:
                break
            for policy in (args.a, args.b) if pair % 2 == 0 else (args.b, args.a):
                rows.append({**run(policy, workload, args.device, int(capacity)), "pair": pair})
    if args.output:
        with open(args.output, "w", encoding="utf-8", newline="") as f:
            out = csv.DictWriter(f, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
    for workload, capacity in cells:
        mine = [r for r in rows if r["workload"] == workload and r["capacity_mib"] == int(capacity)]
        passed = {p: sum(r["passed"] for r in mine if r["policy"] == p) for p in (args.a, args.b)}
        line = f"{os.path.basename(workload).split('.')[0]} at {capacity} MiB: a passed {passed[args.a]} of {len(mine) // 2}, b {passed[args.b]}"
        for field in ("steady_step_ns", "device_time_ns", "driver_time_ns"):
            pairs = {}
            for r in mine:
                if r["passed"] and r[field]:
                    pairs.setdefault(r["pair"], {})[r["policy"]] = r[field]
            ratios = [v[args.b] / v[args.a] for v in pairs.values() if len(v) == 2]
            if ratios:
                line += f"; {field} b / a {interval(ratios)[0]:.4f} ({interval(ratios)[1]:.4f} to {interval(ratios)[2]:.4f}), {len(ratios)} pairs"
        print(line)


if __name__ == "__main__":
    main()
