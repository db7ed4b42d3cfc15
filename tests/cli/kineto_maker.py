#!/usr/bin/env python3
"""Kineto traces of any size, made from a seed, laid out as the profiler lays them out: host operations, each with a
kernel, its launch and the arrow between them; memory events among them; a step now and then. Kernels bear names of 30
to 2000 bytes, as templates do. Usage: kineto_maker.py BYTES FILE [SEED [EVERY [shuffled|without_addresses]]]
EVERY: host operations for each memory event, 16. Prints the counts that a reader must find."""
import random
import sys

OPERATIONS = ["aten::addmm", "aten::empty", "aten::copy_", "aten::to", "autograd::engine::evaluate_function: AddmmBackward0",
              "Optimizer.step#Adam.step"]
STEM = ("void at::native::vectorized_elementwise_kernel<4, float, std::array<char*, 3ul> >::{lambda()#1}::operator()() const, "
        * 20)[:2000]
HEAD = """
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017493504
    }
    ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""
END = """  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": %d.000
  }
  ],
  "traceName": "made"
}
"""


def event(phase, category, name, now_ns, arguments, duration_ns=None, thread=4501):
    duration = "" if duration_ns is None else f', "dur": {us(duration_ns)}'
    process = 4473 if thread == 4501 else 0
    return (f'  {{\n    "ph": "{phase}", "cat": "{category}", "name": "{name}", "pid": {process}, "tid": {thread},\n'
            f'    "ts": {us(now_ns)}{duration},\n    "args": {{\n      {arguments}\n    }}\n  }},\n')


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def make(file, most_bytes, seed=1, every=16, way=""):
    draw, now, live, held, next_address = random.Random(seed), 4955438200000000, [], "", 140698512556032
    made = dict.fromkeys(("allocs", "frees", "kernels", "steps", "live", "peak"), 0)
    file.write(HEAD)
    number = 0
    while file.tell() < most_bytes:
        duration = draw.randint(900, 90000)
        file.write(event("X", "cpu_op", draw.choice(OPERATIONS), now,
                         f'"External id": {number + 1},"Record function id": 0, "Ev Idx": {number}', duration))
        now += duration // 8
        file.write(event("X", "kernel", STEM[:int(30 * (2000 / 30) ** draw.random())], now + 20000,
                         f'"External id": {number},      "queued": 0, "device": 0, "context": 1,      "stream": 7, '
                         f'"correlation": {number + 24},      "registers per thread": 44,      "shared memory": 0,      '
                         '"blocks per SM": 0.969697,      "grid": [128, 1, 1],      "block": [256, 1, 1]',
                         draw.randint(1000, 90999), thread=7))
        file.write(f'  {{\n    "ph": "f", "id": {number + 24}, "pid": 0, "tid": 7, "ts": {us(now + 20000)},\n'
                   '    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  },\n')
        file.write(event("X", "cuda_runtime", "cudaLaunchKernel", now,
                         f'"External id": {number},      "cbid": 211, "correlation": {number + 24}', 4120))
        made["kernels"] += 1
        if number % every == 0:
            frees = len(live) == 512 or bool(live and draw.random() < 0.5)
            if frees:
                address, size = live.pop(draw.randrange(len(live)))
            else:
                address, size = next_address, draw.randint(1, 4096) * 512
                next_address += size
                live.append((address, size))
            made["frees" if frees else "allocs"] += 1
            made["live"] += -size if frees else size
            made["peak"] = max(made["peak"], made["live"])
            place = "" if way == "without_addresses" else f'"Addr": {address}, '
            text = event("i", 'cpu_instant_event", "s": "t', "[memory]", now,
                         f'"Total Reserved": 0, "Total Allocated": {made["live"]}, "Bytes": {-size if frees else size}, '
                         f'"Device Id": 0, "Device Type": 1, {place}"Ev Idx": {number}')
            now += 1000
            if way == "shuffled" and not held:  # it changes places with the next
                held = text
            else:
                file.write(text + held)
                held = ""
        if number % 1000 == 999:
            file.write(event("X", "user_annotation", f"ProfilerStep#{made['steps']}", now, f'"Ev Idx": {number}', 12000))
            made["steps"] += 1
            now += 13000
        number += 1
    file.write(held + END % (now // 1000))
    return made


if __name__ == "__main__":
    options = [int(word) if word.isdigit() else word for word in sys.argv[3:]]
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        print(*(f"{name}={count}" for name, count in make(out, int(sys.argv[1]), *options).items()))
