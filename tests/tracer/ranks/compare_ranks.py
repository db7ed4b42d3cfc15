#!/usr/bin/env python3
"""Traces ranks of the programs of this folder and compares them with what ranks on cards requested.

    compare_ranks.py [-v] [--python PYTHON] [--keep FOLDER] [--recordings FOLDER].. [NAME..]

recorded.tsv has the peaks on the cards. The columns and -v are those of ../compare.py; a name is PROGRAM.RANKofWORLD.
"""

import argparse
import csv
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--most", type=int, default=10)
    p.add_argument("--python", default=os.environ.get("ALLOCRIG_PYTHON", sys.executable))
    p.add_argument("--keep", default="")
    p.add_argument("--recordings", action="append", default=[])
    args = p.parse_args()
    folder = args.keep or tempfile.mkdtemp()
    with open(f"{HERE}/recorded.tsv", encoding="utf-8") as f:
        rows = list(csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t"))
    print(f"{'MiB':24} {'live':>20} {'default':>20} {'expandable':>20}")
    print(f"{'':24}" + f" {'card':>6} {'traced':>6} {'%':>6}" * 3)
    for row in rows:
        name = f"{row['program']}.{row['rank']}of{row['world']}"
        if args.names and not any(n in name for n in args.names):
            continue
        path = traced(name, row["card"], args.python, folder, args.keep)
        try:
            runs = compare.replay(path, row["card"], list(compare.SPECS.values()))
        except (RuntimeError, KeyError) as e:
            print(f"{name}: no trace, see {path}.log: {e}")
            continue
        figures = [runs[0]["metrics"]["peak_granted_bytes"], *(r["metrics"]["peak_reserved_bytes"] for r in runs)]
        pairs = [(int(row[k]) if row[k] else None, f) for k, f in zip(("live", "default", "expandable"), figures)]
        print(f"{name:24} " + " ".join(compare.cell(pair) for pair in pairs))
        history = list(compare.recorded_requests(name, args.recordings)) if args.verbose else []
        if history:
            out = []
            left, right = compare.one_sided(history, list(compare.traced_requests(path)), folder)
            for side, only in (("recorded", left), ("traced", right)):
                out.append(f"    {side} alone: {len(only)} of {len(history)} requests, {sum(r[1] for r in only)} bytes")
                compare.describe(only, args.most, out)
            print("\n".join(out), flush=True)


if __name__ == "__main__":
    main()
