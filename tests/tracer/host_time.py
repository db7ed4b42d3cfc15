#!/usr/bin/env python3
"""The host's time of an operator, of recorded histories: host_time.py FOLDER..

Of each NAME.default.csv.gz (record_one.py --history): the median of the times between two requests in the second half
of the program, in microseconds; then the median of these. It is HOST_NS of kernel_times.py.
"""
import csv
import gzip
import statistics
import sys
from pathlib import Path

medians = []
for path in sorted(p for folder in sys.argv[1:] for p in Path(folder).glob("*.default.csv.gz")):
    with gzip.open(path, "rt") as f:
        times = [int(r["time_us"]) for r in csv.DictReader(f) if r["action"] == "alloc"]
    late = times[len(times) // 2 :]
    if len(late) >= 500:
        medians.append(statistics.median(b - a for a, b in zip(late, late[1:])))
        print(f"{medians[-1]:8.1f} {path.name.split('.')[0]}")
print(f"{statistics.median(medians):8.1f} median of {len(medians)} programs")
