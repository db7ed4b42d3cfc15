"""Rows for pandas: python3 frame.py embedding torch vmm"""
import sys

import allocrig

if len(sys.argv) < 3:
    sys.exit("usage: python3 frame.py WORKLOAD POLICY..")
rows = allocrig.run(sys.argv[2:], sys.argv[1], "sim:capacity=16GiB")
try:
    import pandas
except ImportError:  # the rows are plain dictionaries
    for row in rows:
        print(row["policy"], row["peak_physical_bytes"], "passed" if row["passed"] else row["cause"])
else:
    print(pandas.DataFrame(rows)[["policy", "passed", "peak_physical_bytes"]])
