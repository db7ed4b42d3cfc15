#!/usr/bin/env python3
"""Compares the answers of memory_answers.py: memory_compare.py FOLDER. A line for each comparison, `ok` or `not ok`."""
import json
import os
import sys

FOLDER = sys.argv[1]


def load(name):
    path = os.path.join(FOLDER, name + ".json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def verdict(name, differences):
    differences = [str(one) for one in differences]
    if not differences:
        print(f"ok {name}")
    else:
        print(f"not ok {name}: {'; '.join(differences[:6])[:700]}"
              f"{f' and {len(differences) - 6} more' if len(differences) > 6 else ''}")


def stats(own, policy, point):
    """Keys and values of memory_stats; PyTorch's own may have more keys in another version."""
    a, b = own["points"][point]["stats"], policy["points"][point]["stats"]
    for key in sorted(set(a) | set(b)):
        if key not in a or key not in b:
            yield f"{key} is only in {'PyTorch' if key in a else 'the policy'}"
        elif a[key] != b[key]:
            yield f"{key} is {a[key]} and {b[key]}"


def equal(own, policy, point, key):
    a, b = own["points"][point][key], policy["points"][point][key]
    if a != b:
        if isinstance(a, list):
            first = next((pair for pair in zip(a, b) if pair[0] != pair[1]), (len(a), len(b)))
            yield f"{first[0]} and {first[1]}"[:400]
        elif key == "summary":
            pairs = [pair for pair in zip(a.splitlines(), b.splitlines()) if pair[0] != pair[1]]
            yield f"{len(pairs)} lines differ, first: {pairs[0] if pairs else 'length'}"
        else:
            yield f"{a} and {b}"


def same_allocator(own_name, policy_name):
    """The policy imitates the allocator: everything agrees."""
    own, policy = load(own_name), load(policy_name)
    if not own or not policy:
        verdict(f"{policy_name} against {own_name}", ["one of both did not end"])
        return
    for point in own["points"]:
        name = f"{policy_name} against {own_name}, {point}:"
        verdict(f"{name} memory_stats", stats(own, policy, point))
        for key in ("allocated", "max_allocated", "reserved", "max_reserved", "segments", "summary"):
            verdict(f"{name} {key}", equal(own, policy, point, key))
    for key in ("losses", "traces", "snapshot_keys", "segment_keys", "block_keys", "dump_is_the_snapshot"):
        missing = own[key] != policy[key]
        if isinstance(own[key], list) and key.endswith("keys"):
            missing = set(own[key]) - set(policy[key]) - {"user_metadata"}
        verdict(f"{policy_name} against {own_name}: {key}", [f"{own[key]} and {policy[key]}"] if missing else [])


def another_policy(name):
    """What the program requested is the same whatever the policy; sums hold."""
    own, policy = load("native"), load(name)
    if not own or not policy:
        verdict(name, ["it did not end"])
        return
    wrong = []
    for point, there in own["points"].items():
        here = policy["points"][point]
        if set(there["stats"]) - set(here["stats"]):
            wrong.append(f"{point}: keys are missing: {sorted(set(there['stats']) - set(here['stats']))[:5]}")
        key = "requested_bytes.all.current"
        if point != "all freed" and there["stats"][key] != here["stats"][key]:
            wrong.append(f"{point}: {key} is {there['stats'][key]} and {here['stats'][key]}")
        if not here["allocated"] <= here["reserved"] <= here["max_reserved"]:
            wrong.append(f"{point}: allocated {here['allocated']}, reserved {here['reserved']}, most {here['max_reserved']}")
        if sum(segment[1] for segment in here["segments"]) != here["allocated"]:
            wrong.append(f"{point}: the blocks of the snapshot do not sum to memory_allocated")
        if len(here["summary"].splitlines()) != len(there["summary"].splitlines()):
            wrong.append(f"{point}: the summary has other lines")
    verdict(f"{name}: figures hold", wrong)
    verdict(f"{name}: losses are those of PyTorch's allocator", [] if own["losses"] == policy["losses"] else
            [f"{own['losses'][-1]} and {policy['losses'][-1]}"])
    verdict(f"{name}: a dumped snapshot is the snapshot", [] if policy["dump_is_the_snapshot"] else ["it differs"])


same_allocator("native", "torch")
same_allocator("expandable", "torch_expandable")
for another in ("vmm", "growth"):
    another_policy(another)
