#!/usr/bin/env python3
"""The lines of [reported] for a scenario, from a recording of sleep_wake.py: reported.py PHASES.json [shared]

Reserved bytes at the end of each step of each cycle, and what the process has in use and the owners of it in the first
and the last cycle. A step that a cycle has several times is there once. Blocks that sleep are not in use. With `shared`
other processes were on the card, and what is in use of it is left out.
"""

import json
import sys

STEPS = {"actor.train": "actor.train 4", "actor.reload": "actor.onload", "empty_cache": "rl.empty_cache"}
OWNERS = {"rollout/weights": "rollout/load", "rollout/kv cache": "rollout/allocate",
          "rollout/experience": "rollout/generate", "actor/weights": "actor/weights",
          "actor/optimizer": "actor/optimizer"}  # fmt: skip


def step_of(phase):
    part, _, action = phase.partition(".")
    if phase in STEPS or part == "actor" or action.startswith(("wake", "sleep")):
        return STEPS.get(phase, phase)
    return f"{part}.play {action}"


with open(sys.argv[1], encoding="utf-8") as f:
    rows = [r for r in json.load(f)["phases"] if "." in r["phase"] or r["phase"] == "empty_cache"]
last, seen = max(r["cycle"] for r in rows), set()
for r in rows:
    step, cycle = step_of(r["phase"]), r["cycle"]
    if (cycle, step) in seen or (not cycle and step == "rl.empty_cache"):
        continue
    seen.add((cycle, step))
    place = f"cycle {cycle} {step}" if cycle else step
    print(f"{place}: reserved = {r['reserved_bytes.all.current']}")
    if cycle not in (0, 1, last):
        continue
    if sys.argv[2:] != ["shared"]:
        print(f"{place}: process used = {r['card_total'] - r['card_free']}")
    owners, asleep = r["owners"], r.get("asleep", {})
    held = {name: owners.get(card, 0) for card, name in OWNERS.items()}
    if asleep.get("weights"):
        held["rollout/load"] = 0
    if asleep.get("kv_cache"):
        held["rollout/allocate"] = owners.get("rollout/buffers", 0)
    for name, value in held.items():
        if value > 1 << 20:
            print(f"{place}: owner {name} = {value}")
