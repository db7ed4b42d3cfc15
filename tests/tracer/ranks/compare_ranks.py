#!/usr/bin/env python3
"""Traces ranks of the programs of this folder and compares them with what record_ranks.py recorded on cards.

    compare_ranks.py [-v] [--python PYTHON] [--keep FOLDER] [--card NAME] RECORDINGS [NAME..]

RECORDINGS is the folder in ranks.tar. A name is PROGRAM.RANKofWORLD. The columns and -v are those of ../compare.py.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import compare  # noqa: E402


def traced(name, card, python, folder, keep):
    """The path of the trace of a rank, made if it is not there."""
    path = f"{folder}/{name}.trace"
    if not (keep and os.path.exists(path)):
        program, rank, world = re.fullmatch(r"(\w+)\.(\d+)of(\d+)", name).groups()
        words = [compare.ALLOCRIG, "trace", "-o", path, "--card", card, "--rank", rank, "--world", world]
        with open(f"{path}.log", "w", encoding="utf-8") as log:
            subprocess.run([*words, "--", python, f"{HERE}/{program}.py"], stdout=log, stderr=subprocess.STDOUT)
    return path


def peaks(path):
    """Peaks of live and reserved bytes of a recorded rank; None if it was not recorded or did not finish."""
    if not os.path.exists(path):
        return None, None
    with open(path, encoding="utf-8") as f:
        record = json.load(f)
    if record["outcome"] != "finished":
        return None, None
    return record["stats"]["allocated_bytes.all.peak"], record["stats"]["reserved_bytes.all.peak"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recordings")
    p.add_argument("names", nargs="*")
    p.add_argument("--card", default="h200")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--most", type=int, default=10)
    p.add_argument("--python", default=os.environ.get("ALLOCRIG_PYTHON", sys.executable))
    p.add_argument("--keep", default="")
    args = p.parse_args()
    folder = args.keep or tempfile.mkdtemp()
    print(f"{'MiB':24} {'live':>20} {'default':>20} {'expandable':>20}")
    print(f"{'':24}" + f" {'card':>6} {'traced':>6} {'%':>6}" * 3)
    for path in sorted(glob.glob(f"{args.recordings}/*.default.json")):
        name = os.path.basename(path).removesuffix(".default.json")
        if args.names and not any(n in name for n in args.names):
            continue
        live, default = peaks(path)
        recorded = [live, default, peaks(path.replace(".default.", ".expandable."))[1]]
        path = traced(name, args.card, args.python, folder, args.keep)
        try:
            runs = compare.replay(path, args.card, list(compare.SPECS.values()))
        except (RuntimeError, KeyError) as e:
            print(f"{name}: no trace, see {path}.log: {e}")
            continue
        figures = [runs[0]["metrics"]["peak_granted_bytes"], *(r["metrics"]["peak_reserved_bytes"] for r in runs)]
        print(f"{name:24} " + " ".join(compare.cell(pair) for pair in zip(recorded, figures)))
        history = list(compare.recorded_requests(name, [args.recordings])) if args.verbose else []
        if history:
            out = []
            left, right = compare.one_sided(history, list(compare.traced_requests(path)), folder)
            for side, only in (("recorded", left), ("traced", right)):
                out.append(f"    {side} alone: {len(only)} of {len(history)} requests, {sum(r[1] for r in only)} bytes")
                compare.describe(only, args.most, out)
            print("\n".join(out), flush=True)


if __name__ == "__main__":
    main()
