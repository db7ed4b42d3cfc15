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
import os
import subprocess
import sys
import tempfile

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


def measured(row, traces):
    """Utilisation in percent and the peak of reserved bytes. `of`: peaks of allocated bytes, or of active bytes, which
    include blocks that another stream may still use."""
    path = f"{traces}/{row['trace']}.trace.zst"
    workload = path if os.path.exists(path) else row["trace"]
    spec = row["spec"].replace("{traces}", traces)
    with tempfile.TemporaryDirectory() as folder:
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
    ours, theirs = row["percent"], float(row["published"])
    if abs(ours - theirs) <= NEAR:
        return "agrees"
    first = group[0]
    ours_from, theirs_from = (SEVERE, SEVERE) if row is first else (first["percent"], float(first["published"]))
    return "agrees in direction" if (ours > ours_from) == (theirs > theirs_from) else "does not agree"


def ranking(group, key):
    return [r["policy"] for r in sorted(group, key=lambda r: -float(r[key]))]


def table_lines(name, groups):
    lines = [f"## {name}", "", "| workload | policy | published % | ours % | published GB | ours GiB | verdict |",
             "| --- | --- | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    notes = []
    for workload, group in groups.items():
        for row in group:
            row["verdict"] = verdict(row, group)
            lines.append(f"| {workload} | `{row['spec'].split(':profile')[0]}` for {row['policy']} | {row['published']} | {row['percent']:.1f} | "
                         f"{row['reserved'] or '-'} | {row['reserved_bytes'] / 2**30:.1f} | {row['verdict']} |")  # fmt: skip
            if row["reason"]:
                notes.append(f"- {workload}, {row['policy']}: {row['reason']}")
        same = ranking(group, "published") == ranking(group, "percent")
        lines.append(f"| {workload} | ranking | | | | | {'agrees' if same else 'does not agree: ours ' + ', '.join(ranking(group, 'percent'))} |")
    return lines + [""] + notes + [""]


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


def store_table():
    """The replay of Mooncake's store, with two readings of how long objects live."""
    import store  # noqa: PLC0415: only this table needs the library

    lines = ["## Mooncake's store", "", "| segments of | strategy | failed puts, published | ours, drawn | ours, longest | "
             "fragmentation, published | ours, drawn | ours, longest |", "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    rows = []
    for mib, published in STORE.items():
        for strategy, failed in published.items():
            ours = {reading: store.medians(strategy, mib, reading == "longest") for reading in ("drawn", "longest")}
            fragmentation = STORE_FRAGMENTATION[strategy] if mib == 152 else None
            rows.append({"table": "mooncake", "segment_mib": mib, "strategy": strategy, "published": failed, "ours": ours,
                         "published_fragmentation": fragmentation})  # fmt: skip
            lines.append(f"| {mib} MiB | {strategy} | {failed} | " + " | ".join(f"{ours[r][0]} ({ours[r][1]} to {ours[r][2]})" for r in ours)
                         + f" | {fragmentation or '-'} | " + " | ".join(f"{ours[r][3]:.3f}" for r in ours) + " |")  # fmt: skip
            print(f"mooncake: {mib} MiB, {strategy}: {ours['drawn'][0]} or {ours['longest'][0]} failed (published {failed})", flush=True)
    return lines + [""], rows


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
        head = f.read()
    with open(f"{args.out}/README.md", "w", encoding="utf-8") as f:
        f.write(head + "\n" + "\n".join(lines).rstrip() + "\n")
    with open(f"{args.out}/rematch.json", "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")
    print(f"the tables are in {args.out}/README.md")


if __name__ == "__main__":
    main()
