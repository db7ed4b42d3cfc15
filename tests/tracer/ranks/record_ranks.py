#!/usr/bin/env python3
"""Records the programs of this folder on the cards of one host: record_ranks.py OUT [SECONDS [CARDS]]

With two cards, each rank is a process with a card of its own and talks to the other one through NCCL. With
one card, DDP and FSDP run as jobs of one rank over NCCL. Ranks of larger jobs run alone, with PyTorch's fake process
group, on the real allocator of a card. OUT/ranks.tar is written again whenever a program
ends: PROGRAM.RANKofWORLD.SETTING.json and .csv.gz as of ../record_one.py, and the log of NCCL's allocations.
Processes import PyTorch at once; few of them use the cards at a time, because ranks of several jobs that wait for each
other on one card are slow.
"""

import os
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ONE = next(p for p in (f"{HERE}/../record_one.py", f"{HERE}/record_one.py") if os.path.exists(p))
TOGETHER = ["fsdp2_mixed", "tensor_parallel", "ddp_accumulate", "fsdp2_keep", "pipeline_1f1b", "fsdp1_blocks"]
TOGETHER += ["ddp_views", "zero_adam"]
EXPANDABLE = ["fsdp2_mixed", "tensor_parallel", "ddp_accumulate"]
ALONE = [("tensor_parallel", 1, 4), ("fsdp2_mixed", 1, 4), ("fsdp2_keep", 1, 4), ("pipeline_1f1b", 1, 4)]
GROUPS_AT_ONCE = 4
WAIT = """
import os, runpy, sys, time
import torch
import torch.distributed.fsdp, torch.distributed.tensor.parallel, torch.distributed.pipelining
sys.argv = sys.argv[1:]
go = sys.argv.pop(0)
while not os.path.exists(go):
    time.sleep(0.05)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
out, most = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 600
cards = int(sys.argv[3]) if len(sys.argv) > 3 else 2
work = "/tmp/ranks"
os.makedirs(work, exist_ok=True)
begin = time.time()


def save():
    with tarfile.open(f"{out}/ranks.tar.part", "w") as tar:
        tar.add(work, "ranks")
    os.replace(f"{out}/ranks.tar.part", f"{out}/ranks.tar")


def started(number, backend, ranks, world, conf, words, log):
    """Starts the ranks of a job. They wait for the file work/go.NUMBER."""
    processes = []
    for rank in ranks:
        card = str(rank if backend == "nccl" else number % cards)
        env = {**os.environ, "BACKEND": backend, "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0",
               "CUDA_VISIBLE_DEVICES": card, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29500 + number),
               "OMP_NUM_THREADS": "1", "PYTHONPATH": HERE, "PYTORCH_CUDA_ALLOC_CONF": conf}  # fmt: skip
        if log and rank == 0:
            env |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ALLOC", "NCCL_DEBUG_FILE": f"{work}/nccl.log"}
        name = words[-1].format(rank=rank)
        arguments = [sys.executable, "-c", WAIT, f"{work}/go.{number}", *(w.format(rank=rank) for w in words[:-1])]
        with open(f"{work}/{name}.log", "w", encoding="utf-8") as output:
            processes.append(subprocess.Popen(arguments, env=env, stdout=output, stderr=output))
    return processes


def recorded(program, world, setting):
    """The words that record a rank of a program, and the name of its log."""
    name = f"{program}.{{rank}}of{world}.{setting}"
    history = ["--history"] if setting == "default" else []
    return [ONE, f"{work}/{name}", f"{HERE}/{program}.py", *history, name]


together = tuple(range(cards))
if cards == 1:
    TOGETHER = ["ddp_accumulate", "ddp_views", "zero_adam", "fsdp2_mixed", "fsdp1_blocks"]
    EXPANDABLE = ["ddp_accumulate"]
    ALONE += [("tensor_parallel", 1, 2), ("fsdp1_blocks", 1, 4)]
words = [f"{HERE}/nccl_alone.py", f"{work}/nccl_alone.{{rank}}.json", "nccl_alone.{rank}"]
jobs = [("nccl", together, cards, "", words, True)]
single = [("fake", (rank,), world, "", recorded(p, world, "default"), False) for p, rank, world in ALONE]
jobs += single if cards == 1 else []
jobs += [("nccl", together, cards, "", recorded(p, cards, "default"), False) for p in TOGETHER]
jobs += single if cards > 1 else []
conf = "expandable_segments:True"
jobs += [("nccl", together, cards, conf, recorded(p, cards, "expandable"), False) for p in EXPANDABLE]
waiting = [(number, started(number, *job)) for number, job in enumerate(jobs)]
running = []
while (waiting or running) and time.time() - begin < most:
    alone = bool(running) and running[0][0] == 0
    while waiting and not alone and len(running) < GROUPS_AT_ONCE * 2 // cards:
        number, processes = waiting.pop(0)
        open(f"{work}/go.{number}", "w").close()
        running.append((number, processes))
        alone = number == 0
    ended = [job for job in running if all(p.poll() is not None for p in job[1])]
    running = [job for job in running if job not in ended]
    if ended:
        print([job[0] for job in ended], len(waiting), round(time.time() - begin, 1), flush=True)
        save()
    time.sleep(0.05)
for _, processes in waiting + running:
    for p in processes:
        p.kill()
save()
print("ended after", round(time.time() - begin, 1), "s")
