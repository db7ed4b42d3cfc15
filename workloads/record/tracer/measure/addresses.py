"""Where the driver places segments after a program has done something: python3 addresses.py OUT.tsv

Each scenario is a process of its own. It does what its name says, then takes segments of PyTorch's allocator of several
sizes and writes their addresses in order, in units of 2 MiB below the first one. results/published/h200/addresses.md
has the rules that the simulated driver follows.
"""
import subprocess
import sys

SCENARIOS = {
    "nothing": "",
    "filled": "torch.randn(1000, device='cuda')",
    "product": "torch.randn(512, 512, device='cuda') @ torch.randn(512, 512, device='cuda')",
    "product16": "x = torch.randn(512, 512, device='cuda', dtype=torch.bfloat16); x @ x; del x",
    "linear": "torch.nn.Linear(64, 64).cuda()(torch.randn(8, 64, device='cuda')).sum().backward()",
    "conv": "torch.nn.Conv2d(16, 16, 3).cuda()(torch.randn(4, 16, 32, 32, device='cuda')).sum().backward()",
    "pinned": "p = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)",
    "copied": "torch.randn(1 << 24).cuda()",
    "lstm": "torch.nn.LSTM(64, 64).cuda()(torch.randn(8, 4, 64, device='cuda'))[0].sum().backward()",
    "attention": "q = torch.randn(2, 4, 64, 64, device='cuda', dtype=torch.bfloat16, requires_grad=True);"
                 "torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward(); del q",
    "adam": "m = torch.nn.Linear(64, 64).cuda(); o = torch.optim.Adam(m.parameters());"
            "m(torch.randn(8, 64, device='cuda')).sum().backward(); o.step()",
    "solver": "torch.linalg.eigh(torch.randn(64, 64, device='cuda'))",
    "fft": "torch.fft.rfft2(torch.randn(4, 64, 64, device='cuda'))",
    "sort": "torch.randn(1 << 20, device='cuda').sort()",
}
PROGRAM = """
import torch
torch.cuda.init()
torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
{first}
torch.cuda.synchronize()
kept = []
for mib in [1] * 6 + [12] * 6 + [40] * 8 + [1] * 4 + [100] * 4 + [300] * 3 + [20] * 6 + [600, 33, 33, 33, 2, 2, 700, 64, 64]:
    kept += [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for _ in range(2 if mib == 1 else 1)]
trace = torch.cuda.memory._snapshot()["device_traces"][0]
found = [(e["addr"], e["size"]) for e in trace if e["action"] == "segment_alloc"]
top = found[0][0]
print(hex(top), *(f"{{(a - top) >> 21}}:{{s >> 20}}" for a, s in found))
"""
with open(sys.argv[1], "w") as out:
    runs = [(name, subprocess.Popen([sys.executable, "-c", PROGRAM.format(first=first)], stdout=subprocess.PIPE, text=True))
            for name, first in SCENARIOS.items()]
    for name, run in runs:
        out.write(f"{name}\t{run.communicate()[0].strip()}\n")
