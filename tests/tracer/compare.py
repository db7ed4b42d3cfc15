#!/usr/bin/env python3
"""Traces the programs of this folder without a card and compares the traces with what a card recorded.

    compare.py [-v] [--python PYTHON] [--keep FOLDER] [--recordings FOLDER].. [NAME..]

recorded.tsv and limits.tsv have the figures of the card (record_all.py, README.md). For each program:

    live, default, expandable   peaks in MiB: recorded, traced, difference in %
    safe                        smallest limit with which the program finishes: the recorded bounds, and that of the
                                trace
    limits                      recorded runs under a limit: outcomes and numbers of retries that agree; of several
                                runs of one limit the share that agrees (under_limits.py)

-v prints the requests that only one side has: count x bytes, the steps, the operators and the line of the program. It
needs the recorded history NAME.default.csv.gz, and names operators if there is NAME.default.stacks.ops.gz; both are
looked for in the folders of --recordings and in workloads/data. Requests that both have in one step, in another order,
count as equal.
"""
import argparse
import collections
import concurrent.futures as futures
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

import under_limits

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
PAGE = 2 << 20
SPECS = {"default": "torch", "expandable": "torch:expandable_segments=true"}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("-v", "--verbose", action="store_true", help="list the requests that only one side has")
    p.add_argument("--most", type=int, default=10, help="how many of them; default 10")
    p.add_argument("--python", default=sys.executable, help="the Python that has torch")
    p.add_argument("--keep", default="", help="folder for the traces; they are not made again if they are there")
    p.add_argument("--recordings", action="append", default=[], help="folder with recorded histories")
    p.add_argument("--steps", type=int, default=0, help="trace only so many steps: for -v")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--tsv", default="", help="also write the figures to this file")
    return p.parse_args()


def table(name):
    return under_limits.table(f"{HERE}/{name}.tsv")


def trace(program, args, folder):
    """The trace of a program, made if it is not there, and the last words of the tracer."""
    path = f"{folder}/{program['program']}.trace"
    if args.keep and os.path.exists(path):
        return path, ""
    start = time.time()
    words = [ALLOCRIG, "trace", "-o", path, "--card", program["card"],
             *(["--steps", str(args.steps)] if args.steps else []), "--", args.python, f"{HERE}/{program['file']}",
             *program["arguments"].split()]
    with open(f"{path}.log", "w") as log:
        status = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT).returncode
    with open(f"{path}.log") as log:
        last = log.read().strip().splitlines()[-1:]
    return path, f"{time.time() - start:.0f} s" + (f", exit status {status}: {' '.join(last)}" if status else "")


def replay(path, card, specs):
    """Metrics of each policy on the trace, in the order of specs."""
    words = [ALLOCRIG, "run", "-w", path, "-d", f"sim:profile={card},addresses=driver", "--json", "-", "--jobs", "1",
             "--host", "recorded"]
    for s in specs:
        words += ["-p", s]
    done = subprocess.run(words, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr.strip())
    runs = {r["policy"]["spec"]: r for r in json.loads(done.stdout)["runs"]}
    return [runs[s] for s in specs]


def of_program(path):
    """The settings, with the limit that the program sets itself."""
    limit = ""
    if os.path.exists(path):
        with open(path) as f:
            limit = next((line.split()[2] for line in (f.readline() for _ in range(8)) if line.startswith("# limit:")), "")
    if not limit:
        return SPECS
    return {setting: under(limit, setting) for setting in SPECS}


def under(limit, setting):
    return f"torch:limit={limit}" + (",expandable_segments=true" if setting == "expandable" else "")


def safe_limit(path, card, setting, live, reserved):
    """The smallest limit that suffices, together with all that are tried above it; in multiples of 2 MiB.

    First every 0.8 % from the live to the reserved peak, then every one up to 3 % above the largest that fails. It is no
    capacity of a card: PyTorch checks a limit against the size of a request, also where a part of it is mapped already,
    so that more than the reserved peak can be needed.
    """
    passed, top = {}, -(-reserved // PAGE)

    def tried(limits):
        new = sorted(set(limits) - set(passed))
        for few in (new[i:i + 40] for i in range(0, len(new), 40)):
            runs = replay(path, card, [under(n * PAGE, setting) for n in few])
            passed.update((n, r["outcome"]["passed"]) for n, r in zip(few, runs))
        return max((n for n, ok in passed.items() if not ok), default=live // PAGE - 1)

    fails = tried(range(live // PAGE, top + 1, max(1, top // 125)))
    while True:
        last, fails = fails, tried(range(fails + 1, fails + fails // 33 + 2))
        if last == fails:
            return (fails + 1) * PAGE


def traced_requests(path):
    step = 0
    with open(path) as f:
        for line in f:
            if line.startswith("m,step"):
                step += 1
            elif line.startswith(("a,", "p,")):
                fields = line.rstrip("\n").split(",")
                keys = dict(x.split("=", 1) for x in fields[3:] if "=" in x)
                if "space" not in keys and fields[2] != "0":
                    yield step, int(fields[2]), keys.get("tag", ""), keys.get("at", "")


def recorded_requests(name, folders):
    for folder in folders:
        base = f"{folder}/{name}.default"
        if os.path.exists(base + ".stacks.ops.gz"):
            with gzip.open(base + ".stacks.ops.gz", "rt") as f:
                for line in f:
                    step, size, _, operator, at = line.rstrip("\n").split(",")
                    yield int(step), int(size), operator, at
            return
        if os.path.exists(base + ".csv.gz"):
            step = 0
            with gzip.open(base + ".csv.gz", "rt") as f:
                for row in csv.DictReader(f):
                    if row["action"] == "mark":
                        step += 1
                    elif row["action"] == "alloc":
                        yield step, int(row["size"]), "", ""
            return


def one_sided(recorded, traced, folder):
    """Requests of one side alone: two lists. `diff` aligns the sizes; what is left cancels within a step."""
    with tempfile.TemporaryDirectory(dir=folder) as d:
        for name, rows in (("a", recorded), ("b", traced)):
            with open(f"{d}/{name}", "w") as f:
                f.writelines(f"{r[1]}\n" for r in rows)
        words = ["diff", "--old-line-format=a%dn\n", "--new-line-format=b%dn\n", "--unchanged-line-format=", f"{d}/a",
                 f"{d}/b"]
        lines = subprocess.run(words, capture_output=True, text=True).stdout.split()
    left = [recorded[int(x[1:]) - 1] for x in lines if x[0] == "a"]
    right = [traced[int(x[1:]) - 1] for x in lines if x[0] == "b"]
    both = collections.Counter(r[:2] for r in left) & collections.Counter(r[:2] for r in right)

    def rest(rows):
        more, out = collections.Counter(both), []
        for r in rows:
            if more[r[:2]]:
                more[r[:2]] -= 1
            else:
                out.append(r)
        return out

    return rest(left), rest(right)


def describe(rows, most, out):
    groups = collections.defaultdict(list)
    for r in rows:
        groups[r[1:]].append(r[0])
    order = sorted(groups.items(), key=lambda g: -g[0][0] * len(g[1]))
    for (size, tag, at), steps in order[:most]:
        span = f"{min(steps)}..{max(steps)}" if min(steps) < max(steps) else f"{steps[0]}"
        out.append(f"      {len(steps):6} x {size:<12} step {span:7} {tag} {at}".rstrip())
    if len(order) > most:
        out.append(f"      and {len(order) - most} more kinds, {sum(g[0][0] * len(g[1]) for g in order[most:])} bytes")


def difference(recorded, traced):
    return 100 * (traced - recorded) / recorded


def compare(program, limits, args, folder):
    """The lines to print and a row of figures."""
    name, card, out = program["program"], program["card"], []
    path, note = trace(program, args, folder)
    rows = [r for r in limits if r["program"] == name and r["setting"] in SPECS]
    card_runs = under_limits.limited(rows)
    trials = {key: under(key[2], key[1]) for key in card_runs}
    settings = of_program(path)
    specs = list(settings.values())
    specs += trials.values()
    try:
        runs = dict(zip(specs, replay(path, card, specs)))
    except (RuntimeError, KeyError) as e:
        return [f"{name}: no trace ({note}) {e}"], {"program": name}
    figures = {"program": name, "note": note}
    for key, column, spec in (("live", "peak_granted_bytes", "default"), ("default", "peak_reserved_bytes", "default"),
                              ("expandable", "peak_reserved_bytes", "expandable")):
        traced = runs[settings[spec]]["metrics"][column]
        figures[key] = (int(program[key]) if program[key] else None, traced)
    for s in SPECS:
        low, high = under_limits.bounds([r for r in rows if r["setting"] == s])
        if low is not None and high is None and program[s]:
            high = int(program[s])  # the run without a limit
        figures["safe " + s] = (low, high, safe_limit(path, card, s, figures["live"][1], figures[s][1]))
    score, misses = under_limits.Score(), []
    for key, spec in trials.items():
        run = runs[spec]
        miss = score.add(key, card_runs[key], "finished" if run["outcome"]["passed"] else "out of memory",
                         run["metrics"]["retries"])
        misses += ["      " + miss] if miss else []
    figures["limits"] = score
    if args.verbose:
        out += misses
        history = list(recorded_requests(name, [*args.recordings, f"{ROOT}/workloads/data"]))
        if history:
            traced = list(traced_requests(path))
            if args.steps:
                history = [r for r in history if r[0] < args.steps]
            if not history[-1][0]:  # it was recorded without marks
                traced = [(0, *r[1:]) for r in traced]
            left, right = one_sided(history, traced, folder)
            out.append(f"    recorded alone: {len(left)} of {len(history)} requests, {sum(r[1] for r in left)} bytes")
            describe(left, args.most, out)
            out.append(f"    traced alone: {len(right)} requests, {sum(r[1] for r in right)} bytes")
            describe(right, args.most, out)
        else:
            out.append("    no recorded history")
    return out, figures


def cell(pair):
    recorded, traced = pair
    if recorded is None:
        return f"{'-':>6} {traced / 2**20:6.0f} {'-':>6}"
    return f"{recorded / 2**20:6.0f} {traced / 2**20:6.0f} {difference(recorded, traced):+6.2f}"


def safe_error(low, high, traced):
    """Per cent by which the traced capacity is outside the recorded bounds; 0 within them; None if not known."""
    if high is None or traced is None or low is None and traced <= high:
        return None
    if traced > high:
        return difference(high, traced)
    return difference(low, traced) if low is not None and traced < low else 0.0


def main():
    args = arguments()
    programs = [p for p in table("recorded") if not args.names or p["program"] in args.names]
    limits = table("limits")
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    print(f"{'MiB':20} {'live':>20} {'default':>20} {'expandable':>20}  safe default   expandable  limits  note",
          flush=True)
    print(f"{'':20}" + f" {'card':>6} {'traced':>6} {'%':>6}" * 3 + f" {'MiB':>6} {'%':>6} {'MiB':>6} {'%':>6}  "
          "ok retr", flush=True)
    rows, within, total, score = [], collections.Counter(), collections.Counter(), under_limits.Score()
    with futures.ThreadPoolExecutor(args.jobs) as pool:
        for out, f in pool.map(lambda p: compare(p, limits, args, folder), programs):
            if "live" not in f:
                print("\n".join(out), flush=True)
                continue
            rows.append(f)
            safe = ""
            for s in SPECS:
                error = safe_error(*f["safe " + s])
                safe += f" {f['safe ' + s][2] / 2**20:6.0f}" if f["safe " + s][2] else f" {'-':>6}"
                safe += f" {'-':>6}" if error is None else f" {error:+6.2f}"
                if error is not None:
                    total["safe capacity within 2 %"] += 1
                    within["safe capacity within 2 %"] += abs(error) <= 2
            limit = f["limits"].short() if f["limits"].limits else "  -"
            score += f["limits"]
            for key in ("default", "expandable"):
                if f[key][0]:
                    for bar in (1, 3):
                        total[f"reserved within {bar} %"] += 1
                        within[f"reserved within {bar} %"] += abs(difference(*f[key])) <= bar
            print(f"{f['program']:20} {cell(f['live'])} {cell(f['default'])} {cell(f['expandable'])}{safe} {limit}"
                  f"  {f['note']}", flush=True)
            if out:
                print("\n".join(out), flush=True)
    for k, v in total.items():
        print(f"{k}: {within[k]} of {v}")
    print("\n".join(score.lines()))
    if args.tsv:
        with open(args.tsv, "w") as o:
            o.write("program\tlive_card\tlive_traced\tdefault_card\tdefault_traced\texpandable_card\texpandable_traced"
                    "\tsafe_default_traced\tsafe_expandable_traced\toutcomes\ttrials\tretries\tfinished\n")
            for f in rows:
                cells = [f["program"], *f["live"], *f["default"], *f["expandable"], f["safe default"][2],
                         f["safe expandable"][2], f"{f['limits'].outcomes:g}", f["limits"].limits,
                         f"{f['limits'].retries:g}", f["limits"].with_retries]
                o.write("\t".join("" if c is None else str(c) for c in cells) + "\n")


if __name__ == "__main__":
    main()
