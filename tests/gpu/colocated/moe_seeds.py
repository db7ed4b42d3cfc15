#!/usr/bin/env python3
"""Peaks of moe_varlen (tests/tracer/programs/given) with one seed of torch: moe_seeds.py SEED. Prints a line."""

import os
import random
import sys

import common
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
with open(f"{HERE}/../../tracer/programs/given/programs.py", encoding="utf-8") as program:
    source = program.read().split("if __name__")[0]
seed = int(sys.argv[1])
sys.argv[1:] = ["moe_varlen"]
names = {"__name__": "moe_seeds"}
exec(compile(source, "programs.py", "exec"), names)  # noqa: S102
common.wait_for_turn()
random.seed(1)
torch.manual_seed(seed)
names["moe_varlen"]()
conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "default")
print(f"moe_varlen,{conf},{seed},{torch.cuda.max_memory_reserved()},{torch.cuda.max_memory_allocated()}", flush=True)
