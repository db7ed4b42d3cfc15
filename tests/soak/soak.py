#!/usr/bin/env python3
"""`make soak`: parts that run for long, each alone or all of them; results/soak.md is their page.

Usage: tests/soak/soak.py [PART..] [--jobs N] [--seconds S]
Parts: operations, fuzz, kills, faults, policies, memcheck (on a card), page. Without a part all of them, the page last.

The environment has the budgets: OPERATIONS (10^8) for each policy, FUZZ_SECONDS (36000) of processor time for each reader,
KILLS (1000). COMMANDS, words with spaces between, limits faults and policies to commands that begin with one of them.
Each finished piece of work is a line of .build/soak/PART.jsonl, so that a part that is interrupted goes on
where it was; without this folder it begins anew. The rows of results/soak.csv are the sums of these lines, and the page is
made from the rows. A part replaces its own rows and no others: parts may run on several machines.

Exit status 1: something was found. What was found is printed, and is in the page.
"""
import argparse
import csv
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import faults  # noqa: E402
import fuzzing  # noqa: E402
import kills  # noqa: E402
import lying  # noqa: E402
import memcheck  # noqa: E402
import operations  # noqa: E402
import pages  # noqa: E402
from work import Log, Setting  # noqa: E402

PARTS = {"operations": operations, "fuzz": fuzzing, "kills": kills, "faults": faults, "policies": lying,
         "memcheck": memcheck}
FIELDS = ("part", "name", "done", "wanted", "cpu_s", "figures", "findings", "where")


def read_rows(path):
    try:
        with open(path, newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def write_rows(path, rows):
    with open(path + ".new", "w", newline="") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description="soak", add_help=True)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, help="begin nothing new after so many seconds")
    parser.add_argument("--state", default=os.path.join(ROOT, ".build", "soak"))
    parser.add_argument("--results", default=os.path.join(ROOT, "results"))
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in (*PARTS, "page")]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join((*PARTS, 'page'))}")
    os.chdir(ROOT)
    setting = Setting(given.jobs, given.seconds)
    table = os.path.join(given.results, "soak.csv")
    found = []
    for name in [part for part in given.parts or PARTS if part != "page"]:
        log = Log(given.state, name)
        PARTS[name].run_part(setting, log)
        rows = PARTS[name].rows(setting, log)
        mine = [{"part": name, "where": setting.where(log), **row} for row in rows]
        write_rows(table, [row for row in read_rows(table) if row["part"] != name] + mine)
        found += [f"{name}: {row['name']}: {row['findings']}" for row in mine if row["findings"]]
        done = ", ".join(f"{row['name']} {row['done']}" for row in mine)
        print(f"{name}: {done}", flush=True)
    with open(os.path.join(given.results, "soak.md"), "w") as page:
        page.write(pages.text(read_rows(table), revision()))
    for line in found:
        print("found: " + line)
    return 1 if found else 0


def revision():
    got = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return got.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
