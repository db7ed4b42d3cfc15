#!/usr/bin/env python3
"""What the driver takes outside of PyTorch's pool, step by step: driver_bytes.py OUT.csv

A row for each step: its name, a count (nodes of a graph), and the bytes of the card that it took beyond the growth of
memory_reserved. Graphs of one repeated kernel: add has few bytes of parameters, foreach about four thousand.
"""

import csv
import sys
import threading

import common
import torch
import torch.nn.functional as F

rows = []
last = [0, 0]


def note(name, count=0):
    torch.cuda.synchronize()
    free, reserved = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    rows.append([name, count, last[0] - free - (reserved - last[1])])
    last[:] = [free, reserved]


def graph_of(name, nodes, function):
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            function()
    note(f"{name} capture", nodes)
    counted = common.nodes_of(graph) or {}
    graph.instantiate()
    note(f"{name} instantiate", counted.get("kernel", 0))
    graph.replay()
    note(f"{name} first replay", nodes)
    graph.replay()
    note(f"{name} second replay", nodes)
    return graph


common.wait_for_turn()
torch.cuda.init()
free, total = torch.cuda.mem_get_info()
rows.append(["context", 0, total - free])
last[:] = [free, 0]
x = torch.zeros(1000, device="cuda")
note("first kernel")
streams = [torch.cuda.Stream()]
note("first stream")
streams += [torch.cuda.Stream() for _ in range(40)]
note("40 more streams")
streams.append(torch.cuda.Stream(priority=-1))
note("first stream of high priority")
for s in streams[:32]:
    with torch.cuda.stream(s):
        x.add_(1)
note("a kernel on 32 streams")
a = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
note("randn")
a @ a
note("cuBLAS bfloat16")
a.float() @ a.float()
note("cuBLAS float32")
F.linear(a, a, a[0])
note("cuBLASLt, a bias")
w = a.clone().requires_grad_()
(a @ w).sum().backward()
note("product, backward: autograd's thread")
(a @ w).sum().backward()
note("product, backward again")
thread = threading.Thread(target=lambda: a @ a)
thread.start()
thread.join()
note("product in a third thread")
q = torch.randn(2, 8, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
F.scaled_dot_product_attention(q, q, q, is_causal=True)
note("attention")
F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
note("attention backward")
F.conv2d(torch.randn(2, 16, 32, 32, device="cuda"), torch.randn(16, 16, 3, 3, device="cuda"))
note("cuDNN")
many = [torch.zeros(100, device="cuda") for _ in range(100)]
torch._foreach_add_(many, 1.0)
note("foreach")
graphs = []
for size in (1, 1, 10, 100, 1000, 1000, 2000, 5000, 10000, 20000):
    graphs.append(graph_of("add", size, lambda: x.add_(1)))
for size in (1, 10, 100, 1000, 1000, 5000):
    graphs.append(graph_of("foreach", size, lambda: torch._foreach_add_(many, 1.0)))
for i in range(200):
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1]):
        x.add_(1)
note("200 graphs of one node", 200)
while graphs:
    graphs.pop()
note("all graphs deleted")
graphs.append(graph_of("add again", 1000, lambda: x.add_(1)))
with open(sys.argv[1], "w", newline="", encoding="utf-8") as f:
    writer = csv.writer(f, lineterminator="\n")
    writer.writerow(["step", "count", "bytes"])
    writer.writerows(rows)
print(sys.argv[1], "finished", flush=True)
