#!/usr/bin/env python3
"""Published comparisons of allocators, run again: figure against figure, with what agrees and what does not.

    rematch.py [OUT] [--table NAME].. [--published FILE] [--traces DIR] [--trace PYTHON [--only NAME].. [--seed N]]

OUT (default results/rematch) gets README.md, with a table for each published one, and rematch.json. FILE (default
published.tsv) has the published figures, with their sources, and the policy that stands for each allocator. DIR has the
traces; --trace makes them again with PYTHON, which has PyTorch 2.11, from the commands in traces.tsv, and ends.
Exit status: 0 done, 2 bad usage or input.
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
NEAR = 5.0  # percentage points within which two figures agree
SEVERE = 90.0  # below: severe fragmentation, as STAlloc's README has it
FIELDS = ("table", "workload", "trace", "policy", "spec", "of", "published", "reserved", "reason")


def fail(sentence):
    print(f"rematch.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", nargs="?", default=f"{ROOT}/results/rematch")
    p.add_argument("--table", action="append", help="only this table")
    p.add_argument("--published", default=f"{HERE}/published.tsv")
    p.add_argument("--traces", default=f"{HERE}/traces")
    p.add_argument("--trace", metavar="PYTHON")
    p.add_argument("--only", action="append", help="only this trace")
    return p.parse_args()


def rows_of(path, fields):
    try:
        with open(path, encoding="utf-8") as f:
            lines = [line for line in f if not line.startswith("#")]
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}")
    rows = list(csv.DictReader(lines, delimiter="\t"))
    if rows and set(rows[0]) != set(fields):
        fail(f"{path}: the columns must be {', '.join(fields)}")
    return rows


def run(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        fail(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def make_traces(args):
    os.makedirs(args.traces, exist_ok=True)
    for row in rows_of(f"{HERE}/traces.tsv", ("name", "card", "rank", "world", "seed", "command")):
        if args.only and row["name"] not in args.only:
            continue
        program, *words = row["command"].replace("{programs}", f"{ROOT}/workloads/dataset/programs").split()
        path = f"{args.traces}/{row['name']}.trace.zst"
        options = [word for key in ("card", "rank", "world", "seed") for word in (f"--{key}", row[key])]
        run([ALLOCRIG, "trace", "-o", path, *options, "--", args.trace, "-W", "ignore", f"{HERE}/{program}", *words])
        print(f"{row['name']}: {os.path.getsize(path)} bytes", flush=True)


def plan_of_first_step(path, out):
    """Writes the trace with the sizes of its first step in the others: all that a plan of the first step knows."""
    text, first, step, place = out.replace(".txt", ".whole.txt"), [], 0, 0
    run([ALLOCRIG, "convert", path, text])
    with open(text, encoding="utf-8") as f, open(out, "w", encoding="utf-8") as to:
        for line in f:
            head, _, tag = line.partition(",tag=")
            if line.startswith("m,step"):
                step, place = step + 1, 0
            elif line.startswith("a,") and "space=pinned" not in tag:
                words = head.split(",")
                if step == 0:
                    first.append((words[2], tag))
                else:  # the next request of that operator; a buffer that grew once is left out
                    found = [n for n in range(place, len(first) if place == 0 else min(place + 8, len(first))) if first[n][1] == tag]
                    if found:
                        words[2], place = first[found[0]][0], found[0] + 1
                    line = ",".join(words) + (",tag=" + tag if tag else "")
            to.write(line)


def unbalance(path, out, spread):
    """Writes the trace of a mixture of experts with other numbers of rows: each number of an expert's rows, and of all
    rows that a rank gets, is multiplied by exp of a normal number of that spread (of a third of it). The tracer draws
    routes that are balanced."""
    text, rows_at = out.replace(".txt", ".whole.txt"), 65536
    run([ALLOCRIG, "convert", path, text])
    with open(text, encoding="utf-8") as f, open(out, "w", encoding="utf-8") as to:
        for line in f:
            words = line.split(",", 3)
            if line.startswith("a,"):
                size = int(words[2])
                for unit in (4096, 5632, 2816):  # bytes of a row of the input, of both halves of the inner width, of one
                    rows = size // unit
                    one, every = abs(rows - rows_at / 30) < 400, 0 < abs(rows - rows_at) < 4000
                    if size % unit == 0 and (one or every) and size not in (2816 * 4096, 1408 * 4096, 2048 * 4096):
                        factor = math.exp(random.Random(rows).gauss(0, spread if one else spread / 3))
                        words[2] = str(max(1, round(rows * factor)) * unit)
                        break
                line = ",".join(words)
            to.write(line)


def measured(row, traces):
    """Utilisation in percent and the peak of reserved bytes. `of`: peaks of allocated bytes, or of active bytes, which
    include blocks that another stream may still use."""
    name, _, spread = row["trace"].partition(" experts=")
    places = (f"{traces}/{name}.trace.zst", f"{ROOT}/{name}")
    workload = next((path for path in places if os.path.isfile(path)), name)
    with tempfile.TemporaryDirectory() as folder:
        if spread:
            unbalance(workload, f"{folder}/other.txt", float(spread))
            workload = f"{folder}/other.txt"
        spec = row["spec"].replace("{first_step}", f"{folder}/first.txt")
        if spec != row["spec"]:
            plan_of_first_step(workload, f"{folder}/first.txt")
        series, words = f"{folder}/series.csv", ["-d", "sim:profile=a100-80", "--json", "-"]
        if row["of"] == "active":
            words += ["--series", series]
        text = run([ALLOCRIG, "run", "-p", spec, "-w", workload, *words])
        metrics = json.loads(text)["runs"][0]["metrics"]
        peak = metrics["peak_granted_bytes"]
        if row["of"] == "active":
            with open(series, encoding="utf-8") as f:
                peak = max(int(s["granted_bytes"]) + int(s["pending_bytes"]) for s in csv.DictReader(f))
    return {"percent": 100.0 * peak / max(metrics["peak_reserved_bytes"], 1), "peak_bytes": peak,
            "reserved_bytes": metrics["peak_reserved_bytes"]}  # fmt: skip


def verdict(row, group):
    """Agrees: within NEAR points. In direction: on the same side of PyTorch's allocator; PyTorch's own: of SEVERE."""
    if row["published"] == "-":
        return "-"
    ours, theirs = row["percent"], float(row["published"])
    if abs(ours - theirs) <= NEAR:
        return "agrees"
    first = group[0]
    ours_from, theirs_from = (SEVERE, SEVERE) if row is first else (first["percent"], float(first["published"]))
    return "agrees in direction" if (ours > ours_from) == (theirs > theirs_from) else "does not agree"


def ranking(group, key):
    return [r["policy"] for r in sorted(group, key=lambda r: -float(r[key]))]


def table_lines(name, groups):
    lines = [f"## {name}", "", "| workload | allocator | published % | ours % | published GB | ours GiB | verdict |",
             "| --- | --- | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    notes = []
    for workload, group in groups.items():
        for row in group:
            row["verdict"] = verdict(row, group)
            lines.append(f"| {workload} | {row['policy']} | {row['published']} | {row['percent']:.1f} | "
                         f"{row['reserved'] or '-'} | {row['reserved_bytes'] / 2**30:.1f} | {row['verdict']} |")  # fmt: skip
            if row["reason"]:
                notes.append(textwrap.fill(f"- {workload}, {row['policy']}: {row['reason']}", 118, subsequent_indent="  "))
        if any(row["published"] == "-" for row in group):
            continue
        same = ranking(group, "published") == ranking(group, "percent")
        lines.append(f"| {workload} | ranking | | | | | {'agrees' if same else 'does not agree: ours ' + ', '.join(ranking(group, 'percent'))} |")
    specs = dict.fromkeys(f"{row['policy']}: `{row['spec']}`" for group in groups.values() for row in group)
    profile = " `{first_step}`: a profile of the first step." if any("{first_step}" in s for s in specs) else ""
    lines += ["", textwrap.fill(f"Policies: {'; '.join(specs)}.{profile}", 118)]
    return lines + [""] + (notes + [""] if notes else [])


def utilisation_tables(args):
    lines, rows = [], [r for r in rows_of(args.published, FIELDS) if not args.table or r["table"] in args.table]
    for row in rows:
        row.update(measured(row, args.traces))
        print(f"{row['table']}: {row['workload']}, {row['policy']}: {row['percent']:.1f} % (published {row['published']} %)", flush=True)
    for name in dict.fromkeys(row["table"] for row in rows):
        groups = {}
        for row in rows:
            if row["table"] == name:
                groups.setdefault(row["workload"], []).append(row)
        lines += table_lines(name, groups)
    return lines, rows


STORE = {  # MiB: failed puts of the published replay by strategy; fragmentation at 152 MiB
    152: {"random": 23, "free_ratio_first": 28, "best_fit": 1},
    147: {"random": 107, "free_ratio_first": 80, "best_fit": 20},
    143: {"random": 117, "free_ratio_first": 114, "best_fit": 38},
}
STORE_FRAGMENTATION = {"random": 0.419, "free_ratio_first": 0.405, "best_fit": 0.194}


def store_verdict(published, ours, same_side):
    """The readings have the ranges of their runs. `same_side`: of the strategy `random`."""
    low, high = min(o[1] for o in ours.values()), max(o[2] for o in ours.values())
    return "between the readings" if low <= published <= high else "agrees in direction" if same_side else "does not agree"


def store_table():
    """The replay of Mooncake's store, with two readings of how long objects live."""
    import store  # noqa: PLC0415: only this table needs the library

    lines = ["## Mooncake's store: failed puts of 16,320, and median fragmentation", "",
             "| segments | strategy | failed, published | drawn | longest | fragmentation | drawn | longest | verdict |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    rows = []
    for mib, published in STORE.items():
        first = None
        for strategy, failed in published.items():
            ours = {reading: store.medians(strategy, mib, reading == "longest") for reading in ("drawn", "longest")}
            row = {"table": "mooncake", "segment_mib": mib, "strategy": strategy, "published": failed, "ours": ours,
                   "published_fragmentation": STORE_FRAGMENTATION[strategy] if mib == 152 else None}  # fmt: skip
            first = first or row
            side = row is not first and all((ours[r][0] < first["ours"][r][0]) == (failed < first["published"]) for r in ours)
            row["verdict"] = store_verdict(failed, ours, side)
            rows.append(row)
            lines.append(f"| {mib} MiB | {strategy} | {failed} | " + " | ".join(f"{o[0]} ({o[1]} to {o[2]})" for o in ours.values())
                         + f" | {row['published_fragmentation'] or '-'} | " + " | ".join(f"{o[3]:.3f}" for o in ours.values())
                         + f" | {row['verdict']} |")  # fmt: skip
            print(f"mooncake: {mib} MiB, {strategy}: {ours['drawn'][0]} or {ours['longest'][0]} failed (published {failed})", flush=True)
    return lines + ["", *STORE_NOTES, ""], rows


STORE_NOTES = (
    '- "Removed one to three steps later": in *drawn* the objects of a step and rank live one, two or three steps, in',
    "  *longest* all of them three. The recorded log must be between the two.",
    "- Medians of five runs, which differ in the segment that is tried first; in brackets the range.",
)


def main():
    args = arguments()
    if args.trace:
        make_traces(args)
        return
    os.makedirs(args.out, exist_ok=True)
    lines, rows = utilisation_tables(args)
    if not args.table or "mooncake" in args.table:
        more, store_rows = store_table()
        lines, rows = lines + more, rows + store_rows
    if not rows:
        fail("no table has that name")
    with open(f"{HERE}/head.md", encoding="utf-8") as f:
        head = f.read().replace("](../..", f"]({os.path.relpath(ROOT, args.out)}")
    with open(f"{args.out}/README.md", "w", encoding="utf-8") as f:
        f.write(head + "\n" + "\n".join(lines).rstrip() + "\n")
    with open(f"{args.out}/rematch.json", "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")
    print(f"the tables are in {args.out}/README.md")


if __name__ == "__main__":
    main()
