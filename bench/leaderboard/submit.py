#!/usr/bin/env python3
"""Checks a submission to the benchmark, makes its row, and makes the page of all rows: `allocrig submit`.

    allocrig submit check FOLDER                    the rules of workloads/dataset/RULES.md
    allocrig submit run FOLDER [-o ROW] [--data DIR] [--class NAME].. [--split test|train] [--only NAME].. [--jobs N]
    allocrig submit page ROW.. -o PAGE              a page that works from a file, without a network; .md: tables

FOLDER has submission.ini. DIR (default results/dataset) is what `make dataset` made. Exit status: 0 done, 1 a check
failed, 2 bad usage or input.
"""

import argparse
import concurrent.futures
import configparser
import csv
import hashlib
import html
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
DEVICE = "sim:profile=h100,addresses=driver"
CLASSES = ("recorded", "traced", "synthetic")
KEYS = {"name": True, "policy": True, "authors": True, "division": True, "commit": False, "notes": False}
RATIO, WORST, TIE, SLOW = 1.05, 4.0, 0.005, 10_000
COUNTED = "varlen_transformer:seed=1"  # what instructions are counted on
KNOWN = ("order_flip", "pool_boundary", "sawtooth", "checkerboard", "random:events=4000", "fsdp_runahead:steps=2,layers=4")


def fail(status, sentence):
    print(f"allocrig: submit: {sentence}", file=sys.stderr)
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
    path = found["policy"].split(":")[0]
    if path.startswith("./") or os.path.exists(os.path.join(folder, path)):
        found["policy"] = os.path.join(os.path.abspath(folder), found["policy"].removeprefix("./"))
    return found


def allocrig(*words):
    """Output, and the last line of errors or None."""
    done = subprocess.run([ALLOCRIG, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = done.stderr.strip().splitlines() or ["no output"]
    return done.stdout, lines[-1] if done.returncode > 1 else None


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


def rows_of(data, classes, split, only):
    try:
        f = open(f"{data}/v1.tsv", encoding="utf-8")
    except OSError:
        fail(2, f"{data}/v1.tsv is not there: `make dataset` builds the data set, and --data names another place")
    with f:
        rows = csv.DictReader((line for line in f if not line.startswith("#")), delimiter="\t")
        return [r for r in rows if r["class"] in classes and r["split"] == split and (not only or r["name"] in only)]


def needed_bytes(path, live_peak):
    """The peak of live bytes and, at the same moment, of bytes outside of the pool, as NCCL's: no policy needs less."""
    if not re.search(r"^  o outside ", allocrig("inspect", path)[0], re.M):
        return max(live_peak, 1)
    sizes, live, outside, peak = {}, 0, 0, 1
    with tempfile.TemporaryDirectory() as folder:
        _, error = allocrig("convert", path, f"{folder}/whole.trace")
        if error:
            fail(2, error)
        with open(f"{folder}/whole.trace", encoding="utf-8") as f:
            for line in f:
                kind, *words = line.rstrip("\n").split(",")
                if kind == "a" and "space=pinned" not in words:
                    sizes[words[0]] = int(words[1])
                    live += sizes[words[0]]
                elif kind in ("r", "f"):
                    live -= sizes.pop(words[0], 0)
                elif kind == "o":
                    outside = int(words[0])
                peak = max(peak, live + outside)
    return peak


def figures(policy, path):
    """The metrics of one workload under the policy; None for what is not defined."""
    text, error = allocrig("capacity", "-p", policy, "-w", path, "-d", DEVICE, "--json", "-")
    if error:
        fail(2, error)
    answer = json.loads(text)["answers"][0]
    safe, needed = answer["safe_bytes"], needed_bytes(path, answer["live_peak_bytes"])
    out = {"safe_ratio": round(safe / needed, 4) if safe else None, "needed_bytes": needed, "safe_bytes": safe,
           "slowdown": None, "finishes": None, "driver_calls": None}  # fmt: skip
    capacity = math.ceil(needed * RATIO / 2**21) * 2**21
    results, error = runs(policy, [path], "-d", f"{DEVICE},capacity={capacity}", "--metrics", "none")
    if error is None:
        _, outcome, metrics = results[0]
        out["finishes"], out["driver_calls"] = outcome["passed"], metrics["driver_calls"]
        out["slowdown"] = metrics["slowdown"] if outcome["passed"] else None
    return out


def instructions(policy):
    """Instructions of a request and its free, above those of the policy null; None without valgrind."""
    if not shutil.which("valgrind"):
        return None
    words = ["-w", COUNTED, "-d", "sim:profile=h100", "--metrics", "none"]
    found, error = runs(policy, [COUNTED], "-d", "sim:profile=h100", "--metrics", "none")
    if error:
        return None
    counts = []
    for name in ("null", policy):
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", ALLOCRIG, "run", "-p", name, *words],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        count = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode > 1 or not count:
            return None
        counts.append(int(count[1]))
    return round((counts[1] - counts[0]) / found[0][2]["allocs"])


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def summary(items):
    ratios = [min(i["safe_ratio"] or WORST, WORST) for i in items]
    return {"workloads": len(items), "safe_ratio": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 4),
            "finish": sum(bool(i["finishes"]) for i in items),
            "median_slowdown": median(i["slowdown"] for i in items),
            "median_driver_calls": median(i["driver_calls"] for i in items if i["finishes"])}  # fmt: skip


def data_set(data):
    """The release's tag and a sum of the table without what workloads are for: rows of different ones are not compared."""
    for name in (".zenodo.json", "v1.tsv"):
        if not os.path.exists(f"{data}/{name}"):
            fail(2, f"{data}/{name} is not there: `make dataset` builds the data set, and --data names another place")
    try:
        with open(f"{data}/.zenodo.json", encoding="utf-8") as f, open(f"{data}/v1.tsv", encoding="utf-8") as table:
            rows = "".join(line.rsplit("\t", 1)[0] + "\n" for line in table if not line.startswith("#"))
            return f"{json.load(f)['version']} {hashlib.sha256(rows.encode()).hexdigest()[:12]}"
    except (OSError, ValueError, KeyError) as error:
        fail(2, f"{data} is no data set of `make dataset`: {error}")


def workloads(args, policy, name):
    """The metrics of each workload of a class, in the order of the table."""
    names = [w["name"] for w in rows_of(args.data, (name,), args.split, args.only)]
    paths = [f"{args.data}/{name}/{n}.trace.zst" for n in names]
    for path in paths:
        if not os.path.exists(path):
            fail(2, f"{path} is not there: `make dataset` builds the data set")
    items = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        pending = {pool.submit(figures, policy, path): n for n, path in zip(names, paths)}
        for done in concurrent.futures.as_completed(pending):
            n = pending[done]
            items[n] = done.result()
            print(f"{name} {len(items)}/{len(names)} {n:34}{items[n]['safe_ratio'] or '-':>8}", file=sys.stderr, flush=True)
    return {n: items[n] for n in names}


def make_row(args):
    entry = submission(args.folder)
    row = {"schema": "allocrig.submission/1", **{k: entry.get(k, "") for k in KEYS}, "split": args.split, "data": data_set(args.data),
           "device": DEVICE, "instructions": instructions(entry["policy"]), "classes": {}}  # fmt: skip
    row["policy"] = os.path.basename(row["policy"])
    for name in args.classes or CLASSES:
        items = workloads(args, entry["policy"], name)
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
    # Time is no part of the rank; among equals the faster is first.
    return sorted(found, key=lambda f: (f[0], f[1]["classes"][name]["summary"]["median_slowdown"] or 0))


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
    return f'<svg viewBox="0 0 640 {y + 4}" role="img" aria-label="safe capacity, {name}">{"".join(out)}</svg>'


def notes(row):
    """The notes of a submission; a policy of many instructions says so."""
    slow = f"{row['instructions']:,} instructions a request" if (row.get("instructions") or 0) > SLOW else ""
    return "; ".join(filter(None, (row["notes"], slow)))


def table_row(rank, tied, row, s):
    calls = s.get("median_driver_calls")
    return (f"<tr><td{' title=tied' if tied else ''}>{rank}{' =' if tied else ''}<td class=left title='{html.escape(row['policy'])}'>"
            f"{html.escape(row['name'])}<td>{number(s['safe_ratio'])}<td>{s['finish']} of {s['workloads']}"
            f"<td>{number(s['median_slowdown'])}<td>{number(calls, 0)}<td>{number(row.get('instructions'), 0)}"
            f"<td class=left>{html.escape(row['authors'])}<td class=left>{html.escape(notes(row))}</tr>")  # fmt: skip


def section(rows, name):
    ranked = ranks(rows, name)
    if not ranked:
        return ""
    head = ("<tr><th>rank<th class=left>policy<th>safe capacity<th>finish at 1.05<th>slowdown, median<th>driver calls, median"
            "<th>instructions<th class=left>authors<th class=left>notes</tr>")  # fmt: skip
    shared = [rank for rank, _ in ranked]
    body = "".join(table_row(rank, shared.count(rank) > 1, r, r["classes"][name]["summary"]) for rank, r in ranked)
    names = sorted({w for _, r in ranked for w in r["classes"][name]["workloads"]})
    columns = "".join(f"<th>{html.escape(r['name'])}" for _, r in ranked)
    cells = ""
    for w in names:
        values = [r["classes"][name]["workloads"].get(w, {}).get("safe_ratio") for _, r in ranked]
        least = min([v for v in values if v] or [0])
        cells += f"<tr data-name='{w}'><td>{w}" + "".join(
            f"<td{' class=best' if v and v <= least * (1 + TIE) else ''}>{number(v)}" for v in values) + "</tr>"  # fmt: skip
    return (f"<section id='{name}'><h2>{name}</h2>{bars(ranked, name)}<div class=wide><table>{head}{body}</table></div>"
            f"<details><summary>safe capacity of each workload</summary><div class=wide><table class=each>"
            f"<tr><th>workload{columns}</tr>{cells}</table></div></details></section>")  # fmt: skip


def markdown(rows, name):
    """The table of a class for a comment."""
    ranked = ranks(rows, name)
    shared = [rank for rank, _ in ranked]
    lines = [f"**{name}**", "", "| rank | policy | safe capacity | finish at 1.05 | slowdown, median | driver calls, median |",
             "| ---: | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for rank, row in ranked:
        s = row["classes"][name]["summary"]
        lines.append(f"| {rank}{' =' if shared.count(rank) > 1 else ''} | {row['name'].replace('|', ' ')} | {number(s['safe_ratio'])} "
                     f"| {s['finish']} of {s['workloads']} | {number(s['median_slowdown'])} | {number(s.get('median_driver_calls'), 0)} |")  # fmt: skip
    return "\n".join(lines) + "\n\n" if ranked else ""


def comparable(rows):
    """Rows of the closed division on the first one's data set, whole classes alone; what is left out is said."""
    rows = [r for r in rows if r["division"] == "closed"]
    kinds = [(r["split"], r.get("data", ""), r["device"]) for r in rows]
    for row, kind in zip(rows, kinds):
        if kind != kinds[0]:
            print(f"{row['name']} is left out: its row is of another data set, split or device", file=sys.stderr)
    rows = [row for row, kind in zip(rows, kinds) if kind == kinds[0]]
    for name in CLASSES:
        most = max((len(r["classes"][name]["workloads"]) for r in rows if name in r["classes"]), default=0)
        for row in rows:
            if name in row["classes"] and len(row["classes"][name]["workloads"]) < most:
                print(f"{row['name']} is left out of {name}: its row has only some of the workloads", file=sys.stderr)
                del row["classes"][name]
    return rows


def page(args):
    rows = comparable(read_rows(args.rows))
    if args.output.endswith(".md"):
        text = "".join(markdown(rows, c) for c in CLASSES)
    else:
        text = page_html(rows)
    with open(args.output, "w", encoding="utf-8") as f:
        f.write(text)
    print(f"wrote {args.output}: {len(rows)} rows")


def page_html(rows):
    with open(f"{HERE}/page.html", encoding="utf-8") as f:
        text = f.read()
    split = ", ".join(sorted({r["split"] for r in rows})) or "none"
    data = rows[0].get("data", "").split(" ")[0] if rows else ""
    for name, value in (("SPLIT", split + (f" of {data}" if data else "")), ("DEVICE", DEVICE)):
        text = text.replace(f"@{name}@", html.escape(value))
    return text.replace("@SECTIONS@", "".join(section(rows, c) for c in CLASSES))


def main():
    p = argparse.ArgumentParser(prog="allocrig submit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    one.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="workloads at once; default: one for each core")
    one = commands.add_parser("page", help="make the page of rows")
    one.add_argument("rows", nargs="+")
    one.add_argument("-o", "--output", default="leaderboard.html")
    args = p.parse_args()
    if args.command == "check":
        sys.exit(0 if check(args.folder) else 1)
    make_row(args) if args.command == "run" else page(args)


if __name__ == "__main__":
    main()
