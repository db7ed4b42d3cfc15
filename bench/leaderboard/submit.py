#!/usr/bin/env python3
"""Checks a submission to the benchmark, makes its row, and makes the page of all rows.

    submit.py check FOLDER                          the rules of workloads/dataset/RULES.md
    submit.py run FOLDER [-o ROW] [--data DIR] [--class NAME].. [--split test|train] [--only NAME].. [--jobs N]
    submit.py page ROW.. -o PAGE                    a page that works from a file, without a network

FOLDER has submission.ini. DIR (default results/dataset) is what build.py made. Exit status: 0 done, 1 a check failed, 2
bad usage or input.
"""

import argparse
import configparser
import csv
import html
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
TABLE = f"{ROOT}/workloads/dataset/v1.tsv"
DEVICE = "sim:profile=h100,addresses=driver"
CLASSES = ("recorded", "traced", "synthetic")
KEYS = {"name": True, "policy": True, "authors": True, "division": True, "commit": False, "notes": False}
RATIO, WORST, TIE = 1.05, 4.0, 0.005
KNOWN = ("order_flip", "pool_boundary", "sawtooth", "checkerboard", "random:events=4000", "fsdp_runahead:steps=2,layers=4")


def fail(status, sentence):
    print(f"submit.py: {sentence}", file=sys.stderr)
    sys.exit(status)


def submission(folder):
    """The entries of submission.ini. A path of a shared object is relative to the folder."""
    path = os.path.join(folder, "submission.ini")
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#",))
    try:
        with open(path, encoding="utf-8") as f:
            parser.read_file(f, path)
    except OSError as error:
        fail(2, f"{path} cannot be read: {error.strerror}; RULES.md shows one")
    except (configparser.Error, UnicodeDecodeError) as error:
        fail(2, " ".join(str(error).split()))
    if parser.sections() != ["submission"]:
        fail(2, f"{path}: one section [submission] is expected, and no other")
    found = dict(parser["submission"])
    for key in found.keys() - KEYS.keys():
        fail(2, f"{path}: the key {key} is not known; keys are {', '.join(KEYS)}")
    for key, needed in KEYS.items():
        if needed and not found.get(key):
            fail(2, f"{path}: the key {key} is missing")
    if found["division"] not in ("closed", "open"):
        fail(2, f"{path}: division is {found['division']}; it is closed or open")
    if found["policy"].startswith("./"):
        found["policy"] = os.path.join(os.path.abspath(folder), found["policy"][2:])
    return found


def allocrig(*words):
    """Output, and the last line of errors or None."""
    done = subprocess.run([ALLOCRIG, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout, done.stderr.strip().splitlines()[-1] if done.returncode > 1 and done.stderr.strip() else None


def runs(policy, workloads, *words):
    """The results of runs, none of which is a time of this machine; or an error."""
    args = [a for w in workloads for a in ("-w", w)]
    text, error = allocrig("run", "-p", policy, *args, "--json", "-", *words)
    if error:
        return None, error
    return [(r["workload"]["name"], r["outcome"], r["metrics"]) for r in json.loads(text)["runs"]], None


def check(folder):
    """Prints a line for each check. Returns whether all are met."""
    entry, good = submission(folder), True

    def say(name, problem):
        nonlocal good
        good = good and not problem
        print(f"{'FAILED' if problem else 'ok':7}{name}{': ' + problem if problem else ''}", flush=True)

    policy = entry["policy"]
    first, error = runs(policy, KNOWN, "-d", DEVICE)
    say("the policy opens and serves known workloads", error)
    if error:
        return False
    second, error = runs(policy, KNOWN, "-d", DEVICE)
    say("two runs are the same", error or ("" if first == second else "figures differ between two runs of one input"))
    _, error = runs(f"checked+{policy}", KNOWN, "-d", DEVICE)
    say("the contract holds (decorator `checked`)", error)
    for fault in ("fault(every=7)", "fault(every=3)"):
        _, error = runs(f"{fault}+{policy}", KNOWN, "-d", DEVICE)
        say(f"refused driver calls are survived, {fault}", error)
    _, error = runs(policy, KNOWN, "-d", f"{DEVICE},capacity=256MiB")
    say("a small card is an outcome, not an error", error)
    return good


def rows_of(classes, split, only):
    with open(TABLE, encoding="utf-8") as f:
        rows = csv.DictReader((line for line in f if not line.startswith("#")), delimiter="\t")
        return [r for r in rows if r["class"] in classes and r["split"] == split and (not only or r["name"] in only)]


def figures(policy, path):
    """The metrics of one workload under the policy; None for what is not defined."""
    text, error = allocrig("capacity", "-p", policy, "-w", path, "-d", DEVICE, "--curve", "--json", "-")
    if error:
        fail(2, error)
    found = json.loads(text)
    answer = found["answers"][0]
    at = next((s for s in found["slowdown"] if s["capacity_ratio"] == RATIO), {})
    peak = max(answer["live_peak_bytes"], 1)
    safe = answer["safe_bytes"]
    out = {"safe_ratio": round(safe / peak, 4) if safe else None, "live_peak_bytes": peak, "safe_bytes": safe,
           "slowdown": at.get("slowdown"), "finishes": None, "driver_calls": None}  # fmt: skip
    capacity = at.get("capacity_bytes") or math.ceil(peak * RATIO / 2**21) * 2**21
    results, error = runs(policy, [path], "-d", f"{DEVICE},capacity={capacity}", "--metrics", "none")
    if error is None:
        _, outcome, metrics = results[0]
        out["finishes"], out["driver_calls"] = outcome["passed"], metrics["driver_calls"]
    return out


def summary(items):
    ratios = [min(i["safe_ratio"] or WORST, WORST) for i in items]
    slow = sorted(i["slowdown"] for i in items if i["slowdown"])
    return {"workloads": len(items), "safe_ratio": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 4),
            "finish": sum(bool(i["finishes"]) for i in items),
            "median_slowdown": slow[len(slow) // 2] if slow else None}  # fmt: skip


def make_row(args):
    entry = submission(args.folder)
    row = {"schema": "allocrig.submission/1", **{k: entry.get(k, "") for k in KEYS}, "split": args.split, "device": DEVICE, "classes": {}}
    row["policy"] = os.path.basename(row["policy"])
    for name in args.classes or CLASSES:
        items = {}
        for workload in rows_of((name,), args.split, args.only):
            path = f"{args.data}/{name}/{workload['name']}.trace.zst"
            if not os.path.exists(path) and os.path.exists(f"{args.data}/SHA256SUMS"):
                print(f"{workload['name']} is left out: it is not in {args.data} (build.py --trace PYTHON makes it)", file=sys.stderr)
                continue
            if not os.path.exists(path):
                fail(2, f"{path} is not there: `make dataset` builds the data set")
            items[workload["name"]] = figures(entry["policy"], path)
            print(f"{workload['name']:34}{items[workload['name']]['safe_ratio'] or '-':>8}", file=sys.stderr, flush=True)
        if items:
            row["classes"][name] = {"summary": summary(items.values()), "workloads": items}
    with open(args.output, "w", encoding="utf-8") as f:
        json.dump(row, f, indent=1)
        f.write("\n")
    print(f"wrote {args.output}")


def read_rows(paths):
    rows = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as f:
                row = json.load(f)
        except (OSError, ValueError) as error:
            fail(2, f"{path} is no row: {error}")
        if not isinstance(row, dict) or row.get("schema") != "allocrig.submission/1":
            fail(2, f"{path} is no row of `submit.py run`: its schema is not allocrig.submission/1")
        rows.append(row)
    return rows


def ranks(rows, name):
    """Rank of each row of a class; ties share the rank of the best of them."""
    order = sorted((r for r in rows if name in r["classes"]), key=lambda r: (r["classes"][name]["summary"]["safe_ratio"], r["name"]))
    found, rank, best = [], 0, 0.0
    for place, row in enumerate(order, 1):
        ratio = row["classes"][name]["summary"]["safe_ratio"]
        if not found or ratio > best * (1 + TIE):
            rank, best = place, ratio
        found.append((rank, row))
    return found


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def bars(ranked, name):
    """A bar for each policy: the geometric mean of safe capacity, from 1."""
    most = max([r["classes"][name]["summary"]["safe_ratio"] for _, r in ranked] + [1.1])
    out, y = [], 4
    for _, row in ranked:
        value = row["classes"][name]["summary"]["safe_ratio"]
        width = 360 * (value - 1) / (most - 1)
        out.append(f'<text x="176" y="{y + 12}" text-anchor="end">{html.escape(row["name"])}</text>'
                   f'<rect x="184" y="{y}" width="{max(width, 1):.1f}" height="15"/>'
                   f'<text x="{190 + width:.1f}" y="{y + 12}">{value:.3f}</text>')  # fmt: skip
        y += 21
    return f'<svg width="640" height="{y + 4}" role="img" aria-label="safe capacity, {name}">{"".join(out)}</svg>'


def section(rows, name):
    ranked = ranks(rows, name)
    if not ranked:
        return ""
    head = "<tr><th>rank<th>policy<th>authors<th>safe capacity<th>finish at 1.05<th>median slowdown at 1.05<th>notes</tr>"
    body = "".join(
        f"<tr><td>{rank}<td title='{html.escape(r['policy'])}'>{html.escape(r['name'])}<td>{html.escape(r['authors'])}"
        f"<td>{number(s['safe_ratio'])}<td>{s['finish']} of {s['workloads']}<td>{number(s['median_slowdown'])}"
        f"<td>{html.escape(r['notes'])}</tr>"
        for rank, r in ranked for s in [r["classes"][name]["summary"]])  # fmt: skip
    names = sorted({w for _, r in ranked for w in r["classes"][name]["workloads"]})
    columns = "".join(f"<th>{html.escape(r['name'])}" for _, r in ranked)
    cells = ""
    for w in names:
        values = [r["classes"][name]["workloads"].get(w, {}).get("safe_ratio") for _, r in ranked]
        least = min([v for v in values if v] or [0])
        cells += f"<tr data-name='{w}'><td>{w}" + "".join(
            f"<td{' class=best' if v and v <= least * (1 + TIE) else ''}>{number(v)}" for v in values) + "</tr>"  # fmt: skip
    return (f"<section id='{name}'><h2>{name}</h2>{bars(ranked, name)}<table>{head}{body}</table>"
            f"<details><summary>safe capacity of each workload</summary><table class='each'><tr><th>workload{columns}</tr>"
            f"{cells}</table></details></section>")  # fmt: skip


def page(args):
    with open(f"{HERE}/page.html", encoding="utf-8") as f:
        text = f.read()
    rows = [r for r in read_rows(args.rows) if r["division"] == "closed"]
    split = ", ".join(sorted({r["split"] for r in rows})) or "none"
    text = text.replace("@SECTIONS@", "".join(section(rows, c) for c in CLASSES)).replace("@SPLIT@", split).replace("@DEVICE@", DEVICE)
    with open(args.output, "w", encoding="utf-8") as f:
        f.write(text)
    print(f"wrote {args.output}: {len(rows)} rows")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check", help="check a submission")
    one.add_argument("folder")
    one = commands.add_parser("run", help="make the row of a submission")
    one.add_argument("folder")
    one.add_argument("-o", "--output", default="row.json")
    one.add_argument("--data", default=f"{ROOT}/results/dataset")
    one.add_argument("--class", dest="classes", action="append", choices=CLASSES)
    one.add_argument("--split", choices=("test", "train"), default="test")
    one.add_argument("--only", action="append", help="only this workload")
    one = commands.add_parser("page", help="make the page of rows")
    one.add_argument("rows", nargs="+")
    one.add_argument("-o", "--output", default="leaderboard.html")
    args = p.parse_args()
    if args.command == "check":
        sys.exit(0 if check(args.folder) else 1)
    make_row(args) if args.command == "run" else page(args)


if __name__ == "__main__":
    main()
