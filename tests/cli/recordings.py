#!/usr/bin/env python3
"""The shipped recordings compared with the statistics beside them. Usage: recordings.py ALLOCRIG FOLDER"""
import collections
import functools
import gc
import glob
import json
import os
import re
import subprocess
import sys

gc.disable()  # millions of values without cycles: looking for some takes a fifth of the time

PROGRAM, FOLDER = sys.argv[1:]


def check(name, *pairs):
    """Each pair is of two values that must be the same."""
    wrong = [f"{one} is not {other}" for one, other in pairs if one != other]
    print(f"ok {name}" if not wrong else f"not ok {name}: {'; '.join(wrong)}")


@functools.lru_cache(None)
def read(path):
    """The head of a trace and its events as lists of fields."""
    text = os.path.join(FOLDER, "recording.txt")
    subprocess.run([PROGRAM, "convert", path, text], check=True, stdout=subprocess.DEVNULL)
    with open(text, encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = dict(re.match("# ([^:]*): (.*)", line).groups() for line in lines[1:] if line.startswith("# "))
    return head, [line.split(",") for line in lines if not line.startswith("#")]


def peak_of(events):
    sizes, live, most = {}, 0, 0
    for event in events:
        if event[0] == "a":
            sizes[event[1]] = int(event[2])
            live += int(event[2])
        elif event[0] in "rf":
            live -= sizes.pop(event[1], 0)
        most = max(most, live)
    return most


paths = sorted(glob.glob("workloads/data/*.json"))
for path in paths:
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    stats = said["stats"]
    name = os.path.basename(path)[:-5]
    head, events = read(path[:-5] + ".csv.gz")
    kinds = collections.Counter(event[0] for event in events)
    words = collections.Counter(event[1] for event in events if event[0] in "!m")
    allocs, requested = kinds["a"], {event[1] for event in events if event[0] == "r"}
    whole = sum(event[0] == "f" and event[1] not in requested for event in events)
    completed = kinds["f"] - whole
    notes = sum(number for word, number in words.items() if word.startswith("segment_"))
    granted = stats["allocated_bytes.all.peak"]
    check(f"recording_{name}_is_as_its_statistics_say",
          (len(events) > 400, True), (allocs, stats["allocation.all.allocated"]), (words["alloc"], allocs),
          (whole + len(requested), stats["allocation.all.freed"]),
          (words["segment_alloc"] + words["segment_map"], stats["num_device_alloc"]),
          (allocs + whole + len(requested) + whole + completed + notes, said["events"]),
          (kinds["k"], said.get("kernels", 0)), (sum(int(event[2]) for event in events if event[0] == "k"), said.get("kernel_ns", 0)),
          (words["step"], said.get("steps", 0)), (int(head.get("limit", 0)), said.get("limit", 0)),
          (head.get("conf", ""), said["conf"]), (head["recorder"], "torch 2.11.0+cu130"), (head["card"], "NVIDIA H100 80GB HBM3"),
          (head.get("complete", "yes"), "yes"), (kinds["t"] > 0, True),
          # the allocator counts blocks, which are a little larger than the requests
          (granted // 100 * 99 <= peak_of(events) <= granted, True))
check("there_are_recordings", (len(paths) >= 15, True))

# Streams of kernels are the allocator's if the .json says so; the others come after them: gpt2_train has one of its own
# and kernels on three.
for name, streams in ("tape_small", 1), ("gpt2_train", 3), ("side_streams", 4), ("streams_prefetch", 2):
    _, events = read(f"workloads/data/{name}.default.csv.gz")
    found = {event[3] if len(event) > 3 and event[3].isdigit() else "0" for event in events if event[0] == "a"}
    found |= {event[1] for event in events if event[0] == "k"}
    check(f"streams_of_{name}", (len(found), streams), (max(map(int, found)), streams - 1))

# One stream captures all graphs into one private pool. In the growing segments it is inferred: the 7 large requests fit
# the common pool too, which has no large range there.
for name, wanted in ("graphs.default", 32), ("graphs.expandable", 25):
    head, events = read(f"workloads/data/{name}.csv.gz")
    pools = [[field for field in event if field.startswith("pool=")] for event in events if event[0] == "a"]
    check(f"pool_of_{name}", (pools.count(["pool=1"]), wanted), (pools.count([]), len(pools) - wanted),
          (head["name"], "graphs" if name == "graphs.default" else name))
