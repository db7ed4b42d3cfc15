#!/usr/bin/env python3
"""Long runs against `allocrig drift`, in two steps: long_compare.py predict | compare TABLE.csv NAME=FOLDER..

`predict` reads FOLDER/long.PROGRAM.SETTING.first.csv.gz, the recorded first steps of each run of long_run.py, and writes
TABLE.csv; it opens no other file. The number of steps is --steps, or that of --at NAME.PROGRAM.SETTING=STEPS. `compare`
reads long.PROGRAM.SETTING.csv, what the card had, and prints the table with both. NAME is of the runs, such as the seed.
ALLOCRIG names the program (default: ./allocrig). Measured drift is the slope of least squares over the last half.
"""

import argparse
import csv
import glob
import json
import os
import subprocess

MIB = 1 << 20
SPECS = {"default": "torch", "expandable": "torch:expandable_segments=true"}
COLUMNS = ["runs", "program", "setting", "steps", "recorded", "level", "low", "high", "drift", "drift_low", "drift_high",
           "levels_off"]  # fmt: skip


def predict(key, path, steps, seeds):
    name, program, setting = key
    answer = subprocess.run([os.environ.get("ALLOCRIG", "./allocrig"), "drift", path, "-p", SPECS[setting], "--steps",
                             str(steps), "--seeds", str(seeds), "--json", "-"],
                            stdout=subprocess.PIPE, check=True).stdout  # fmt: skip
    found = json.loads(answer)
    policy = found["policies"][0]
    level, drift = policy["levels"][-1]["reserved_mib"], policy["mib_per_million_steps"]
    assert policy["levels"][-1]["step"] == steps, policy["levels"][-1]
    return dict(zip(COLUMNS, [name, program, setting, steps, found["recorded_steps"],
                              *(round(level[k], 1) for k in ("estimate", "low", "high")),
                              *(round(drift[k], 1) for k in ("estimate", "low", "high")), policy["levels_off"]]))  # fmt: skip


def slope(rows, steps):
    """Of reserved MiB in 10^6 steps, over the last half."""
    half = [(int(r["step"]), int(r["reserved"]) / MIB) for r in rows if int(r["step"]) > steps / 2]
    x, y = (sum(v) / len(half) for v in zip(*half))
    return 1e6 * sum((a - x) * (b - y) for a, b in half) / sum((a - x) ** 2 for a, _ in half)


def compare(table, folders):
    inside = [0, 0, 0]
    print("| program | runs | setting | steps | at the end | predicted | interval | drift | predicted | interval |")
    print("| --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | --- |")
    for p in table:
        with open(f"{folders[p['runs']]}/long.{p['program']}.{p['setting']}.csv", encoding="utf-8") as f:
            rows = [r for r in csv.DictReader(f) if int(r["step"]) <= int(p["steps"])]
        steps = int(rows[-1]["step"])
        assert steps == int(p["steps"]), (p, steps)
        end, drift = int(rows[-1]["reserved"]) / MIB, slope(rows, steps)
        level = float(p["low"]) - 0.05 <= end <= float(p["high"]) + 0.05
        rate = float(p["drift_low"]) - 0.05 <= drift <= float(p["drift_high"]) + 0.05
        inside = [inside[0] + 1, inside[1] + level, inside[2] + rate]
        print(f"| `{p['program']}` | {p['runs']} | {p['setting']} | {steps} | {end:.0f}{'' if level else ' *'} "
              f"| {float(p['level']):.0f} | {float(p['low']):.0f} to {float(p['high']):.0f} "
              f"| {drift:.0f}{'' if rate else ' *'} | {float(p['drift']):.0f} "
              f"| {float(p['drift_low']):.0f} to {float(p['drift_high']):.0f} |")  # fmt: skip
    print(f"\n{inside[1]} of {inside[0]} levels and {inside[2]} of {inside[0]} drifts are in their intervals")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["predict", "compare"])
    p.add_argument("table")
    p.add_argument("folders", nargs="+")
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--at", action="append", default=[])
    options = p.parse_args()
    folders = dict(f.split("=", 1) for f in options.folders)
    if options.what == "compare":
        with open(options.table, encoding="utf-8") as f:
            compare(list(csv.DictReader(f)), folders)
        return
    at, rows = dict(a.rsplit("=", 1) for a in options.at), []
    for name, folder in folders.items():
        for path in sorted(glob.glob(f"{folder}/long.*.first.csv.gz")):
            key = (name, *os.path.basename(path).split(".")[1:3])
            rows.append(predict(key, path, int(at.get(".".join(key), options.steps)), options.seeds))
            print(rows[-1], flush=True)
    with open(options.table, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


main()
