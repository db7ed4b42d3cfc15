#!/usr/bin/env python3
"""Requests that several free blocks of the best size could serve: ties.py HISTORY.csv HISTORY.json

The history of a run of sleep_wake.py (common.py), of which the training of the first cycle counts. Prints the requests
of the common large pool; those with several free blocks of the best size; and of those the ones that the block at the
lowest address serves although the segment of another was made before.
"""

import bisect
import json
import sys

SMALL = 2 << 20  # bytes of a segment of the small pool
FIRST, LAST = 16, 20  # the marks of steps 1 to 4 of cycle 1 are 17 to 20; 16 is actor.load
starts, segments, free, live = [], {}, {}, {}  # segments: bytes, number, pool; free, live: bytes
mark = made = requests = ties = lowest = 0
with open(sys.argv[2], encoding="utf-8") as f:
    pools = [m["pool"] for m in json.load(f)["segments_made"]]


def segment_of(address):
    start = starts[bisect.bisect_right(starts, address) - 1] if starts else -1
    return start if start >= 0 and start <= address < start + segments[start][0] else None


def serves(start, address):
    """Counts a request that a free block in a segment serves."""
    global requests, ties, lowest
    if segments[start][0] == SMALL or not FIRST <= mark < LAST:
        return
    large = [(a, segments[segment_of(a)]) for a, b in free.items() if b == free[address]]
    equal = [a for a, (b, _, pool) in large if b != SMALL and pool == segments[start][2]]
    requests += 1
    ties += len(equal) > 1
    first = min(equal, key=lambda a: (segments[segment_of(a)][1], a))
    lowest += len(equal) > 1 and address == min(equal) != first


for line in open(sys.argv[1], encoding="utf-8"):
    action, *numbers = line.split(",")
    if action not in ("mark", "segment_alloc", "segment_free", "alloc", "free_completed"):
        continue
    address, size = int(numbers[0]), int(numbers[1])
    if action == "mark":
        mark = size
    elif action == "segment_alloc":
        made += 1
        bisect.insort(starts, address)
        segments[address], free[address] = (size, made, pools[made - 1]), size
    elif action == "segment_free":
        starts.remove(address)
        del segments[address], free[address]
    elif (start := segment_of(address)) is None:  # pinned host memory
        continue
    elif action == "alloc":
        serves(start, address)
        granted, whole = max(512, -(-size // 512) * 512), free.pop(address)
        if whole - granted < (512 if segments[start][0] == SMALL else (1 << 20) + 1):
            granted = whole
        live[address] = granted
        if whole > granted:
            free[address + granted] = whole - granted
    else:
        low, high = address, address + live.pop(address)
        if high < start + segments[start][0]:
            high += free.pop(high, 0)
        for a, b in list(free.items()):
            if a >= start and a + b == low:
                low = a
                del free[a]
        free[low] = high - low
print(requests, "requests,", ties, "with several blocks,", lowest, "at the lowest address and not in the first segment")
