#!/usr/bin/env python3
"""Trains one program, whose sequences vary in length, with less and less memory: under `mosaic` in the plug-in, and under
PyTorch's own expandable segments with the same limit. Losses must have the bits of the run without a limit, also where
pages were divided, whose content was copied.

Usage: tight_train.py OUT.csv [MULTIPLE..]    multiples of the peak of live bytes
A row is one process. Exit status 1: a loss differs."""
import csv
import json
import os
import subprocess
import sys

STEPS, WIDTH, LAYERS, VOCABULARY = 40, 1024, 8, 8192
HERE = os.path.dirname(os.path.abspath(__file__))


def train(torch):
    import torch.nn as nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 16, WIDTH // 16).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2) / (WIDTH // 16) ** 0.5).softmax(-1)
            x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.manual_seed(0)
    embed, head = nn.Embedding(VOCABULARY, WIDTH).cuda(), nn.Linear(WIDTH, VOCABULARY).cuda()
    blocks = nn.Sequential(*[Block() for _ in range(LAYERS)]).cuda()
    parameters = [*embed.parameters(), *blocks.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    draw, losses = torch.Generator().manual_seed(1), []
    for _ in range(STEPS):
        length = 64 + int(torch.randint(0, 900, (1,), generator=draw))
        tokens = torch.randint(0, VOCABULARY, (6, length + 1), generator=draw).cuda()
        hidden = blocks(embed(tokens[:, :-1]))
        loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def child(allocator, limit_bytes):
    """One process. Prints JSON."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    if allocator == "expandable":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    else:
        os.environ["ALLOCRIG_POLICY"] = f"mosaic:limit={limit_bytes}" if limit_bytes else "mosaic"
    import torch

    sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "bench", "plugin"))
    import allocrig_torch

    if allocator == "mosaic":
        allocrig_torch.install()
    elif limit_bytes:
        torch.cuda.set_per_process_memory_fraction(limit_bytes / torch.cuda.mem_get_info()[1])
    answer = {"losses": [], "outcome": "passed", "card": torch.cuda.get_device_name(), "torch": torch.__version__}
    try:
        answer["losses"] = [loss.hex() for loss in train(torch)]
    except torch.OutOfMemoryError as error:
        answer["outcome"] = "out of memory: " + str(error).splitlines()[0][:90]
    if allocator == "expandable":
        stats = torch.cuda.memory_stats()
        answer["live"], answer["reserved"] = stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.peak"]
    else:
        answer["live"], answer["reserved"] = (allocrig_torch.figure("peak_" + n) for n in ("live_bytes", "physical_bytes"))
    print("@" + json.dumps(answer), flush=True)


def run(allocator, limit_bytes):
    done = subprocess.run([sys.executable, __file__, "--child", allocator, str(limit_bytes)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("@")]
    if lines:
        return json.loads(lines[-1][1:])
    return {"losses": [], "outcome": f"status {done.returncode}: {done.stderr.strip()[-160:]}", "live": 0, "reserved": 0}


def main():
    if sys.argv[1] == "--child":
        child(sys.argv[2], int(sys.argv[3]))
        return 0
    multiples = [float(m) for m in sys.argv[2:]] or [1.05, 1.03, 1.02, 1.01]
    free = run("expandable", 0)
    rows, wrong = [("expandable", "none", free)], 0
    for multiple in multiples:
        for allocator in ("mosaic", "expandable"):
            rows.append((allocator, multiple, run(allocator, int(free["live"] * multiple))))
    with open(sys.argv[1], "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["allocator", "multiple", "outcome", "steps", "same_losses", "peak_live_bytes", "peak_reserved_bytes"])
        for allocator, multiple, r in rows:
            same = r["losses"] == free["losses"][:len(r["losses"])]
            wrong += not same
            out.writerow([allocator, multiple, r["outcome"], len(r["losses"]), same, r["live"], r["reserved"]])
    print(f"{free.get('card')}, PyTorch {free.get('torch')}, {wrong} with other losses")
    return wrong > 0


sys.exit(main())
