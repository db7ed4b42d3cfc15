#!/usr/bin/env python3
"""Runs the programs of this folder on one card or two: record_all.py OUT SECONDS CARDS GROUP..

Groups: sleep, sleep_b, orders, graphs, long, moe, or a part of a job's name with a dot in it. OUT/recordings.tar has
all files, OUT/log.txt what they printed; the tar is written again whenever a job ends. All processes import PyTorch at
once. Jobs of sleep and graphs then have card 0 to themselves, one after the other, because they measure the free memory
of the card. The others run together: with two cards, those of long under the default settings on card 1 from the start;
all others on card 0 in the end, MOST at a time (default: 10). PROGRAMS, STEPS, HISTORY, LAST and SEED in the
environment change the long runs.
"""

import os
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
out, most, cards, groups = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
work = os.environ.get("WORK", "/tmp/colocated")
os.makedirs(work, exist_ok=True)
begin = time.time()
library = f"{work}/sleeping_memory.so"
home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{home}/include", f"{HERE}/sleeping_memory.c", "-o", library,
                f"-L{home}/lib64/stubs", "-lcuda"], check=True)  # fmt: skip

EXPANDABLE = "expandable_segments:True"
SLEEP = {"A.empty": ["--empty"], "A.keep": [], "A.level2": ["--empty", "--level", "2"]}
SLEEP_B = {"B.empty": ["--empty", "--order", "B"], "B.keep": ["--order", "B"]}
ORDERS = {"B.20": ["--empty", "--order", "B", "--layers", "20"], **{f"B.again{i}": SLEEP_B["B.empty"] for i in (1, 2, 3)}}
for order in "CD":
    ORDERS |= {f"{order}.empty": ["--empty", "--order", order], f"{order}.keep": ["--order", order]}
jobs = []  # name, group, conf, words, alone


def job(group, name, words, conf="", lane="alone"):
    if any(g == group or ("." in g and g in f"{group}.{name}") for g in groups):
        jobs.append((f"{group}.{name}", conf, words, lane))


def sleep(group, name, options, conf="", lane="alone"):
    words = ["sleep_wake.py", f"{work}/{group}.{name}", "--library", library, *options]
    job(group, name, words, conf, lane)


for name, options in SLEEP.items():
    sleep("sleep", name, options)
sleep("sleep", "A.expandable", ["--empty"], EXPANDABLE)
sleep("sleep", "A.toggle", ["--empty", "--toggle"], EXPANDABLE)
for name, options in SLEEP_B.items():
    sleep("sleep_b", name, options)
for name, options in ORDERS.items():
    sleep("orders", name, options, lane="after")
for layers in (4, 16, 48):
    for pools in ("shared", "own", "ascending", "repeat"):
        for warm in ((True, False) if pools == "shared" else (True,)):
            name = f"{pools}.{layers}.{'warm' if warm else 'cold'}"
            words = ["graph_sizes.py", f"{work}/graphs.{name}.csv", "--layers", str(layers), "--pools", pools]
            job("graphs", name, words + ["--warm"] * warm)
job("graphs", "shared.4.expandable", ["graph_sizes.py", f"{work}/graphs.shared.4.expandable.csv", "--warm"], EXPANDABLE)
job("graphs", "driver", ["driver_bytes.py", f"{work}/driver_bytes.csv"])
for conf in ("", EXPANDABLE):
    for name in os.environ.get("PROGRAMS", "varlen moe unet").split():
        setting = "expandable" if conf else "default"
        words = ["long_run.py", f"{work}/long.{name}.{setting}", name, "--until", str(begin + most - 20)]
        words += ["--steps", os.environ.get("STEPS", "10000"), "--seed", os.environ.get("SEED", "1")]
        words += ["--history", os.environ.get("HISTORY", "100"), "--last", os.environ.get("LAST", "-1")]
        job("long", f"{name}.{setting}", words, conf, "after" if conf or cards == 1 else "beside")
    for seed in range(1, 9):
        job("moe", f"{seed}.{'expandable' if conf else 'default'}", ["moe_seeds.py", str(seed)], conf, "after")

log = open(f"{out}/log.txt", "w", encoding="utf-8")


def start(item):
    name, conf, words, lane = item
    card = "1" if lane == "beside" else "0"
    env = {**os.environ, "TURN": f"{work}/turn.{name}", "CUDA_VISIBLE_DEVICES": card, "OMP_NUM_THREADS": "2",
           "PYTORCH_CUDA_ALLOC_CONF": conf, "PYTHONUNBUFFERED": "1"}  # fmt: skip
    words = [sys.executable, f"{HERE}/{words[0]}", *words[1:]]
    output = open(f"{work}/{name}.log", "w", encoding="utf-8")
    return name, subprocess.Popen(words, env=env, stdout=output, stderr=output)


def go(entry):
    open(f"{work}/turn.{entry[0]}", "w").close()


def save():
    with tarfile.open(f"{out}/recordings.tar.part", "w") as tar:
        for name in sorted(os.listdir(work)):
            if not name.startswith(("turn.", "sleeping")):
                tar.add(f"{work}/{name}", name)
    os.replace(f"{out}/recordings.tar.part", f"{out}/recordings.tar")


started = {lane: [start(j) for j in jobs if j[3] == lane] for lane in ("alone", "beside", "after")}
alone, after, current, running = started["alone"], started["after"], None, list(started["beside"])
for entry in running:
    go(entry)
while (current or running or alone or after) and time.time() - begin < most:
    ended = [e for e in [current, *running] if e and e[1].poll() is not None]
    for name, process in ended:
        with open(f"{work}/{name}.log", encoding="utf-8", errors="replace") as f:
            text = f.read()
        line = f"{time.time() - begin:.1f} {name} {process.returncode}: {text[-400:].strip()}"
        print(line, flush=True)
        print(line, file=log, flush=True)
    running = [e for e in running if e not in ended]
    current = None if current in ended else current
    if ended:
        save()
    if alone and not current:
        current = alone.pop(0)
        go(current)
    while after and not alone and not current and len(running) < int(os.environ.get("MOST", "10")):
        running.append(after.pop(0))
        go(running[-1])
    time.sleep(0.02)
for _, process in [*alone, *after, *running, *([current] if current else [])]:
    process.kill()
save()
print("ended after", round(time.time() - begin, 1), "s")
