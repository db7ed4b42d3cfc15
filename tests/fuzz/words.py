#!/usr/bin/env python3
"""The dictionary of a fuzz target: the texts in the sources of its reader. Usage: tests/fuzz/words.py TARGET >FILE"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACE = ["workloads/trace/*.c", "workloads/trace/FORMAT.md"]
SOURCES = {
    "assignment": ["workloads/formats/xla/buffer_assignment.c"],
    "convert": TRACE,
    "csv": ["workloads/formats/torch/recorded_csv.c"],
    "dump": ["workloads/formats/xla/bfc_*.c"],
    "files": ["bench/regress/waivers.c", "bench/regress/result_set.c", "bench/suite/tenants_suite.c", "bench/report/model.c",
              "bench/report/run_output.c", "sim/bounds/plan_file.c", "sim/tenants/process*.c",
              "workloads/formats/torch/sidecar.c"],
    "history": ["bench/regress/history_file.c"],
    "kineto": ["workloads/formats/kineto/*.c"],
    "logs": ["workloads/formats/logs/*.c", "workloads/formats/planning/*.c", "workloads/formats/rows.c"],
    "message": ["sim/explain/message*.c"],
    "nsys": ["workloads/formats/nsys/*.c", "workloads/io/sqlite_file.c", "workloads/formats/logs/umpire.c"],
    "pickle": ["workloads/formats/torch/snapshot*.c", "workloads/formats/torch/pickle.c"],
    "pprof": ["workloads/formats/xla/pprof.c"],
    "profile": ["sim/sim_device/profile.c"],
    "scenario": ["bench/suite/scenario*.c", "bench/suite/ini.c", "sim/twin/*.c", "sim/twin/parts/*.c"],
    "spec": ["allocators/options.c", "allocators/spec.c", "allocators/policies/*.c", "allocators/policies/*/settings.c",
             "allocators/policies.def"],
    "suite": ["bench/suite/suite.c", "bench/suite/grid.c", "bench/suite/ini.c"],
    "text": TRACE,
    "timeline": ["workloads/formats/torch/memory_timeline.c"],
}


def words(target):
    found = set()
    for pattern in SOURCES.get(target, []):
        for path in ROOT.glob(pattern):
            text = re.sub(r"(?m)^#include .*$", "", path.read_text(encoding="utf-8"))
            found |= set(re.findall(r'"([^"\\\n%]{2,40})"', text))
            if path.suffix == ".def":
                found |= set(re.findall(r"\b[A-Z]+\((\w+)", text))
    return sorted(word for word in found if word.isascii() and re.search(r"\w", word) and word.count(" ") < 4)


def main():
    print(f"# {sys.argv[1]}")  # an empty file is refused
    for word in words(sys.argv[1]):
        print(f'"{word}"')


if __name__ == "__main__":
    main()
