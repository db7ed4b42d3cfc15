#!/usr/bin/env python3
"""Usage: timeline.py WHOLE THIN MOST: a timeline of a run of 30 steps, and the same with at most MOST values and calls."""
import json
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        timeline = json.load(file)
    by_name = {}
    for event in timeline["traceEvents"]:
        by_name.setdefault((event["ph"], event["name"] if event["ph"] in "CX" else ""), []).append(event)
    for (phase, _), events in by_name.items():  # in order, and slices do not overlap
        ends = [event.get("ts", 0) + event.get("dur", 0) for event in events]
        assert all(end <= event.get("ts", 0) for end, event in zip(ends, events[1:])), phase
    return timeline, by_name


def most(events):
    return max(event["args"]["bytes"] for event in events)


(whole, by_name), (thin, thin_by_name) = load(sys.argv[1]), load(sys.argv[2])
at_most = int(sys.argv[3])
counters = {name: events for (phase, name), events in by_name.items() if phase == "C"}
calls = sum(len(events) for (phase, _), events in by_name.items() if phase == "X")
assert len(by_name["M", ""]) == 3 and len(by_name["i", ""]) == 30
assert set(counters) == {"live", "granted", "reserved", "physical"}
assert len(counters["live"]) > 60 and len(counters["granted"]) > 60
assert len(counters["reserved"]) == len(by_name["X", "alloc"]) + len(by_name.get(("X", "free"), []))
assert most(counters["reserved"]) >= most(counters["live"]) > 0
# thinning keeps every peak, and says how much there was
assert len(thin_by_name["C", "live"]) <= at_most / 4 < 100 < len(counters["live"])
assert most(thin_by_name["C", "live"]) == most(counters["live"])
assert sum(len(events) for (phase, _), events in thin_by_name.items() if phase == "X") == at_most < calls
assert thin["otherData"]["driver_calls"] == calls
