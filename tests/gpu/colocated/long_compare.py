#!/usr/bin/env python3
"""Long runs of long_run.py against `allocrig drift`:

    long_compare.py predict PREDICTED.csv NAME=FOLDER..    reads FOLDER/long.PROGRAM.SETTING.first.csv.gz and no more
    long_compare.py extract CARD.csv NAME=FOLDER..         from FOLDER/long.PROGRAM.SETTING.csv: changes of reserved MiB
    long_compare.py compare PREDICTED.csv CARD.csv         prints the table

NAME is of the runs, such as the seed. A prediction is for --steps, or for --at NAME.PROGRAM.SETTING=STEPS. ALLOCRIG
names the program (default: ./allocrig). Measured drift is the slope of least squares over the last half.
"""

import argparse
import csv
import glob
import json
import os
import subprocess

MIB, EVERY = 1 << 20, 10
SPECS = {"default": "torch", "expandable": "torch:expandable_segments=true"}
COLUMNS = ["runs", "program", "setting", "steps", "recorded", "level", "low", "high", "drift", "drift_low", "drift_high",
           "levels_off"]  # fmt: skip


def key_of(path):
    """Program and setting."""
    return os.path.basename(path).split(".")[1:3]


def predict(name, path, steps, seeds):
    program, setting = key_of(path)
    words = [os.environ.get("ALLOCRIG", "./allocrig"), "drift", path, "-p", SPECS[setting], "--steps", str(steps),
             "--seeds", str(seeds), "--json", "-"]  # fmt: skip
    found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    policy = found["policies"][0]
    level, drift = policy["levels"][-1], policy["mib_per_million_steps"]
    assert level["step"] == steps, level
    figures = [round(of[k], 1) for of in (level["reserved_mib"], drift) for k in ("estimate", "low", "high")]
    return [name, program, setting, steps, found["recorded_steps"], *figures, policy["levels_off"]]


def changes(name, path):
    with open(path, encoding="utf-8") as f:
        rows = [(int(r["step"]), int(r["reserved"]) / MIB) for r in csv.DictReader(f)]
    for i, (step, mib) in enumerate(rows):
        if i in (0, len(rows) - 1) or mib != rows[i - 1][1]:
            yield [name, *key_of(path), step, f"{mib:g}"]


def slope(rows, steps):
    """Of reserved MiB in 10^6 steps, over the last half."""
    half = [r for r in rows if r[0] > steps / 2]
    x, y = (sum(v) / len(half) for v in zip(*half))
    return 1e6 * sum((a - x) * (b - y) for a, b in half) / sum((a - x) ** 2 for a, _ in half)


def compare(table, card):
    levels = drifts = 0
    print("| program | seed | setting | steps | at the end | predicted | interval | drift | predicted | interval |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for p in table:
        found = {int(c["step"]): float(c["reserved_mib"]) for c in card
                 if all(c[k] == p[k] for k in ("runs", "program", "setting"))}  # fmt: skip
        steps, rows = max(found), []
        assert steps == int(p["steps"]), (p, steps)
        for step in range(EVERY, steps + 1, EVERY):
            rows.append((step, found[step] if step in found else rows[-1][1]))
        cells = [f"`{p['program']}`", p["runs"], p["setting"], str(steps)]
        inside = []
        for mine, names in ((found[steps], ("level", "low", "high")), (slope(rows, steps), COLUMNS[8:11])):
            estimate, low, high = (float(p[k]) for k in names)
            inside.append(low - 0.05 <= mine <= high + 0.05)
            cells += [f"{mine:.0f}{'' if inside[-1] else ' *'}", f"{estimate:.0f}", f"{low:.0f} to {high:.0f}"]
        levels, drifts = levels + inside[0], drifts + inside[1]
        print("|", " | ".join(cells), "|")
    print(f"\n{levels} of {len(table)} levels and {drifts} of {len(table)} drifts are in their intervals")


def read(path):
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def write(path, names, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["predict", "extract", "compare"])
    p.add_argument("table")
    p.add_argument("folders", nargs="+")
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--at", action="append", default=[])
    options = p.parse_args()
    if options.what == "compare":
        compare(read(options.table), read(options.folders[0]))
        return
    at, rows = dict(a.rsplit("=", 1) for a in options.at), []
    for name, folder in (f.split("=", 1) for f in options.folders):
        for path in sorted(glob.glob(f"{folder}/long.*.first.csv.gz" * (options.what == "predict"))):
            steps = int(at.get(".".join([name, *key_of(path)]), options.steps))
            rows.append(predict(name, path, steps, options.seeds))
        for path in sorted(glob.glob(f"{folder}/long.*.*.csv" * (options.what == "extract"))):
            rows += changes(name, path)
    columns = COLUMNS if options.what == "predict" else ["runs", "program", "setting", "step", "reserved_mib"]
    write(options.table, columns, rows)


main()
