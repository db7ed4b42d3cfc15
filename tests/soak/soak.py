#!/usr/bin/env python3
"""`make soak`: parts that run for long, each alone or all of them; results/soak.md is their page.

Usage: tests/soak/soak.py [PART..] [--jobs N] [--seconds S]
Parts: operations, fuzz, kills, faults, policies, memcheck (on a card), page. Without a part all of them, the page last.

The environment has the budgets: OPERATIONS (10^8) for each policy, FUZZ_SECONDS (36000) of processor time for each reader,
KILLS (1000). COMMANDS, with commas between ("rig async, run"), limits faults and policies to commands that begin with
one of them, operations to policies and memcheck to runs.
Each finished piece of work is a line of .build/soak/PART.jsonl, so that a part that is interrupted goes on
where it was; without this folder it begins anew. The rows of results/soak.csv are the sums of these lines, one for each
name; `run` is when the folder was made. The page is made from the rows. A new row of operations, fuzz or kills stands
beside those of earlier runs, and the page adds them up: remove by hand what was run on code that is another now. In the
other parts it replaces the row of the same name. So parts may run on several machines, and a part in several runs;
`--state FOLDER` takes the lines of another machine, whose code is SOAK_COMMIT if it has no history.

Exit status 1: something was found. What was found is printed, and is in the page.
"""
import argparse
import csv
import os
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
ADDED = ("operations", "fuzz", "kills")
FIELDS = ("part", "name", "run", "commit", "done", "wanted", "cpu_s", "figures", "findings", "where")


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
        mine = [{"part": name, "run": log.run(), "commit": setting.commits(log.of(row["name"])),
                 "where": setting.where(log.of(row["name"])), **row}
                for row in PARTS[name].rows(setting, log) if log.of(row["name"])]
        write_rows(table, joined(name, read_rows(table), mine))
        found += [f"{name}: {row['name']}: {row['findings']}" for row in mine if row["findings"]]
        done = ", ".join(f"{row['name']} {row['done']}" for row in mine)
        print(f"{name}: {done}", flush=True)
    with open(os.path.join(given.results, "soak.md"), "w") as page:
        page.write(pages.text(read_rows(table)))
    for line in found:
        print("found: " + line)
    return 1 if found else 0


def joined(part, rows, mine):
    """The rows with those of this run, in the order of the parts and of the names that were there."""
    run = {row["run"] for row in mine}
    names = {row["name"] for row in mine}
    own = [row for row in rows if row["part"] == part]
    order = list(dict.fromkeys(row["name"] for row in [*own, *mine]))
    own = [row for row in own if row["name"] not in names or (part in ADDED and row["run"] not in run)] + mine
    own.sort(key=lambda row: order.index(row["name"]))
    return [row for row in rows if row["part"] != part] + own


if __name__ == "__main__":
    sys.exit(main())
