#!/usr/bin/env python3
"""Compares the rows of two policies (`allocrig submit run`), workload by workload.

    compare.py BASELINE.json POLICY.json [-o DIR]

Prints what the results of a search state: capacity in each class, where it is more, what is gained where the baseline
needs more than 1.02 times the bytes, and where the policy is slower at 1.05. DIR gets test.csv and figure.svg. Exit
status: 0 done, 2 bad usage or input.
"""

import argparse
import csv
import json
import math
import sys
from xml.sax.saxutils import escape

COLORS = {"baseline": "#c44", "policy": "#27c"}


def rows_of(path):
    try:
        with open(path) as file:
            row = json.load(file)
        return row["name"], {(c, n): w for c, entry in row["classes"].items() for n, w in entry["workloads"].items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        print(f"compare.py: {path}: {error}; give rows that `allocrig submit run` has made", file=sys.stderr)
        sys.exit(2)


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1


def summary(names, a, b):
    """The lines of the page."""
    keys = [k for k in a if k in b and a[k]["safe_bytes"] and b[k]["safe_bytes"]]
    yield f"| class | workloads | safe capacity: {names[0]} | {names[1]} | less, equal, more |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for kind in dict.fromkeys(k[0] for k in keys):
        own = [k for k in keys if k[0] == kind]
        less = sum(b[k]["safe_bytes"] < a[k]["safe_bytes"] for k in own)
        more = sum(b[k]["safe_bytes"] > a[k]["safe_bytes"] for k in own)
        yield (f"| {kind} | {len(own)} | {mean([a[k]['safe_ratio'] for k in own]):.4f} | {mean([b[k]['safe_ratio'] for k in own]):.4f} "
               f"| {less}, {len(own) - less - more}, {more} |")
    ratio = {k: b[k]["safe_bytes"] / a[k]["safe_bytes"] for k in keys}
    for k in sorted((k for k in keys if ratio[k] > 1), key=lambda k: -ratio[k]):
        yield f"more: {k[1]} {100 * (ratio[k] - 1):.2f} %"
    gain = [k for k in keys if a[k]["safe_ratio"] > 1.02]
    yield f"{100 * (1 - mean([ratio[k] for k in gain])):.2f} % less in {len(gain)} workloads where more than 2 % can be gained"
    both = [k for k in keys if a[k]["finishes"] and b[k]["finishes"] and a[k]["slowdown"] and b[k]["slowdown"]]
    slower = [k for k in both if b[k]["slowdown"] > a[k]["slowdown"]]
    yield f"slower in {len(slower)} of {len(both)}: {', '.join(k[1] for k in slower) or 'none'}"
    for name, x, y in ((names[1], b, a), (names[0], a, b)):
        yield f"only {name} finishes at 1.05: {', '.join(k[1] for k in keys if x[k]['finishes'] and not y[k]['finishes']) or 'none'}"


def write_csv(path, names, a, b):
    columns = ("safe_bytes", "slowdown", "finishes", "driver_calls")
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["class", "workload", "needed_bytes"] + [f"{n}_{c}" for c in columns for n in names])
        for k in a:
            out.writerow([*k, a[k]["needed_bytes"]] + [x[k].get(c) for c in columns for x in (a, b)])


def write_figure(path, names, a, b):
    """Two dots for each workload."""
    height = 46 + 18 * len(a)
    at = lambda ratio: 250 + min(ratio - 1, 0.17) * 3000  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="790" height="{height + 30}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="250" y="18" font-size="13">Safe capacity, as a multiple of the bytes that are needed</text>']
    for i, (role, name) in enumerate(zip(("baseline", "policy"), names)):
        out.append(f'<circle cx="{256 + 150 * i}" cy="32" r="4" fill="{COLORS[role]}"/><text x="{264 + 150 * i}" y="36">{escape(name)}</text>')
    for step in range(9):
        x = at(1 + step / 50)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="46" y2="{height}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{height + 14}" text-anchor="middle">{1 + step / 50:.2f}</text>')
    for i, k in enumerate(a):
        y, x1, x2 = 58 + 18 * i, at(a[k]["safe_ratio"]), at(b[k]["safe_ratio"])
        out.append(f'<text x="244" y="{y + 4}" text-anchor="end">{escape(k[1])}</text><line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y}" y2="{y}" stroke="#999"/>'
                   f'<circle cx="{x1:.1f}" cy="{y}" r="4" fill="{COLORS["baseline"]}"/><circle cx="{x2:.1f}" cy="{y}" r="4" fill="{COLORS["policy"]}"/>')
        if max(a[k]["safe_ratio"], b[k]["safe_ratio"]) > 1.17:
            out.append(f'<text x="764" y="{y + 4}">{a[k]["safe_ratio"]:.2f}</text>')
    with open(path, "w") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("baseline")
    parser.add_argument("policy")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    (first, a), (second, b) = rows_of(args.baseline), rows_of(args.policy)
    b = {k: b[k] for k in a if k in b}
    a = {k: a[k] for k in b}
    print("\n".join(summary((first, second), a, b)))
    if args.output:
        write_csv(f"{args.output}/test.csv", (first, second), a, b)
        write_figure(f"{args.output}/figure.svg", (first, second), a, b)


main()
