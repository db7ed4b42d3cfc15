#!/usr/bin/env python3
"""Reserved bytes at the end of each phase, recorded and in the twin: phases.py ALLOCRIG > phases.csv

Run it at the root of the repository. `rising`: the twin with addresses in the order of the driver's calls.
"""

import csv
import functools
import gzip
import json
import os
import subprocess
import sys
import tempfile

STEPS = {"actor.train": "actor.train 4", "actor.reload": "actor.onload", "empty_cache": "rl.empty_cache",
         "first kernel": "rollout.play first-kernel"}  # fmt: skip
RUNS = {"a-empty": "", "a-keep": "_keep", "a-level2": "_level2", "a-expandable": "_expandable", "b-empty": "_b",
        "b-again-1": "_b", "b-again-2": "_b", "b-again-3": "_b", "b-keep": "_b_keep", "b-20": "_b_20", "c-empty": "_c",
        "c-keep": "_c_keep", "d-empty": "_d", "d-keep": "_d_keep"}  # fmt: skip


def step_of(phase):
    part, _, action = phase.partition(".")
    if phase in STEPS or part == "actor" or action.startswith(("wake", "sleep")):
        return STEPS.get(phase, phase)
    return f"{part}.play {action}"


def recorded(name):
    with gzip.open(f"results/published/h200/colocated/order-{name}.json.gz") as f:
        rows = json.load(f)["phases"]
    return [(r["cycle"], step_of(r["phase"]), r["reserved_bytes.all.current"]) for r in rows if r["phase"] != "context"]


@functools.cache
def simulated(scenario, card, folder):
    command = [sys.argv[1], "twin", f"workloads/scenarios/recorded/sleep_wake{scenario}.ini", "--what-if", "no"]
    command += ["--set", f"machine.card={card}", "--json", f"{folder}/twin.json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(f"{folder}/twin.json", encoding="utf-8") as f:
        phases = json.load(f)["phases"]
    # What the driver loads and the graphs keep are steps of the scenario alone.
    own = [p for p in phases if p["step"].startswith(("rollout.", "actor.", "rl."))]
    return [(p["cycle"], p["step"], p["ranks"][0]["reserved_bytes"]) for p in own]


out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["run", "cycle", "step", "card", "twin", "rising"])
with tempfile.TemporaryDirectory() as folder:
    rising = os.path.join(folder, "rising.csv")
    with open(rising, "w", encoding="utf-8") as f:
        f.write("ordinal,bytes,address\n")
    for name, scenario in RUNS.items():
        card = recorded(name)
        twin = simulated(scenario, "sim:profile=h200", folder)
        other = simulated(scenario, f"sim:profile=h200,addresses={rising}", folder)
        assert [r[:2] for r in card] == [r[:2] for r in twin] == [r[:2] for r in other], name
        for row, a, b in zip(card, twin, other):
            out.writerow([name, *row, a[2], b[2]])
