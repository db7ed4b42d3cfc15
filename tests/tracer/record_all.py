#!/usr/bin/env python3
"""Records all programs of this folder on a card: record_all.py OUT [NAME..]

1. every program without a limit, under the default settings (with its history) and with expandable segments;
2. the smallest limit with which the programs of LIMITED finish, by bisection to 1 %, under both settings: every trial
   is a process of its own and has its record, also with its number of retries;
3. every program once more with the stacks of its requests, which name the operators.
RECORD_JOBS: how many of 1 run at once, default 4. With RECORD_LIMITS=FILE, whose lines are PROGRAM, SETTING and BYTES, those limits take the place of 2.
With RECORD_REPEAT=N each of those runs N times in all, the further times after everything else and the shortest first.
Several processes share the card: its memory is much larger than their sum. A program that retried without a limit, or
that failed for want of memory, runs again alone.
"""
import concurrent.futures as futures
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = ["compile_lengths", "nanogpt_compile", "actor_learner", "mamba_scan", "bart_beam", "cache_static_dynamic", "generate_cache", "t5_adafactor", "bert_scaler"]
ALONE = ["prefetch_stream", "unet_diffusion", "streams_branches"]  # what they do depends on the time that the card takes
LIMITED = ["bert_scaler", "llama_lora", "t5_adafactor", "moe_topk", "generate_cache", "voxel_unique", "graph_sage",
           "vae_transpose", "resnet_sgd", "dlrm_sparse",
           "lion_ema_accumulate", "eval_empty_cache", "qlora_like", "bart_beam", "conv3d_video", "gnn_scatter",
           "nerf_rays", "chunked_loss_function", "fourier_operator"]
CONF = {"default": "", "expandable": "expandable_segments:True"}
out = sys.argv[1]
archive = os.environ.get("RECORD_ARCHIVE")
begin = time.time()
names = sorted(n[:-3] for n in os.listdir(HERE + "/programs") if n.endswith(".py"))
names = sys.argv[2:] or [n for n in FIRST if n in names] + [n for n in names if n not in FIRST]
budget = float(os.environ.get("RECORD_SECONDS", 480))


def left():
    return budget - (time.time() - begin)


def record(name, setting, label="", *options):
    """One process. Its record, or None if it wrote none."""
    if left() < 5:
        return None
    base = f"{out}/{name}.{setting}{label}"
    env = dict(os.environ, PYTHONUNBUFFERED="1")
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    if CONF[setting]:
        env["PYTORCH_CUDA_ALLOC_CONF"] = CONF[setting]
    cache = f"{tempfile.gettempdir()}/compiled.{name}.{setting}{label}"  # empty, as in the first run on a machine
    env.update(TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=cache + ".triton")
    with open(base + ".log", "w") as log:
        try:
            subprocess.run([sys.executable, HERE + "/record_one.py", base, f"{HERE}/programs/{name}.py", *options],
                           stdout=log, stderr=subprocess.STDOUT, env=env, timeout=min(150, left()))
        except subprocess.TimeoutExpired:
            print("timeout", base, flush=True)
    try:
        r = json.load(open(base + ".json"))
    except OSError:
        print("no record", base, open(base + ".log").read()[-600:], flush=True)
        return None
    s = r["stats"]
    print(f"{time.time() - begin:5.0f}s {name} {setting}{label} {r['outcome']} {r['failed'][:100]}"
          f" live {s['allocated_bytes.all.peak'] >> 20} reserved {s['reserved_bytes.all.peak'] >> 20}"
          f" retries {s['num_alloc_retries']} {r['seconds']}s", flush=True)
    return r


def bisect(name, setting, free):
    """The smallest limit with which the program finishes, to 1 %."""
    s = free["stats"]
    low, high, trial = s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"], 0
    while high - low > 0.01 * high:
        middle = (low + high) // 2 >> 21 << 21
        r = record(name, setting, f".limit{trial}", "--limit", str(middle))
        if r is None or r["outcome"] == "failed":
            return
        low, high = (low, middle) if r["outcome"] == "finished" else (middle, high)
        trial += 1
    print("smallest", name, setting, high, flush=True)


def pack():
    """All records in files of at most 14 MiB, as many as there must be."""
    if not archive:
        return
    os.makedirs(archive, exist_ok=True)
    part, size, tar = 0, 0, None
    for n in sorted(os.listdir(out), key=lambda n: (not n.endswith((".json", ".csv.gz")), n)):
        bytes_ = os.path.getsize(f"{out}/{n}")
        if tar is None or size + bytes_ > 14 << 20:
            if tar:
                tar.close()
            tar, part, size = tarfile.open(f"{archive}/records{part}.tar", "w"), part + 1, 0
        tar.add(f"{out}/{n}", n)
        size += bytes_ + 1024
    if tar:
        tar.close()


os.makedirs(out, exist_ok=True)
results, rows, limited = {}, [], []


def free_run(name, setting):
    results[name, setting] = record(name, setting, "", *(["--history"] if setting == "default" else []))


with futures.ThreadPoolExecutor(int(os.environ.get("RECORD_JOBS", 4))) as pool:
    list(pool.map(lambda a: free_run(*a), [(n, s) for n in names if n not in ALONE for s in CONF]))
for n in [n for n in names if n in ALONE]:
    for s in CONF:
        free_run(n, s)
for (n, s), r in list(results.items()):
    if r and (r["stats"]["num_alloc_retries"] or r["outcome"] == "out of memory"):
        free_run(n, s)
pack()
print(f"free runs done {time.time() - begin:.0f}s", flush=True)
with futures.ThreadPoolExecutor(10) as pool:
    if os.environ.get("RECORD_LIMITS"):
        with open(os.environ["RECORD_LIMITS"]) as f:
            rows = [line.split() for line in f]
        work = limited = [pool.submit(record, n, s, f".limit{i}", "--limit", limit) for i, (n, s, limit) in enumerate(rows)]
    else:
        work = [pool.submit(bisect, n, s, results[n, s]) for n in LIMITED for s in CONF if results.get((n, s))]
    work = [*work, *(pool.submit(record, n, "default", ".stacks", "--stacks") for n in names)]
    for w in work:
        w.result()
    pack()
    ran = sorted((w.result()["seconds"], i) for i, w in enumerate(limited) if w.result())
    again = [(turn, i) for turn in range(1, int(os.environ.get("RECORD_REPEAT", 1))) for _, i in ran]
    work = [pool.submit(record, *rows[i][:2], f".limit{i}.again{turn}", "--limit", rows[i][2]) for turn, i in again]
    for w in work:
        w.result()
pack()
