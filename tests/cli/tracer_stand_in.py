"""A stand-in for a traced program and its tracer: writes a trace by the environment that `allocrig trace` sets.

Eight layers of 40 MiB of weights; each step takes activations in proportion to the batch, which is BATCH or the first
argument; above CLIFF it is 690 more. At STOP it ends allocrig as a user does. MODE makes what goes wrong: fails, later (fails from seed 2 on), dies (no trace is complete), stops, envelope, invalid."""
import os
import signal
import sys

MIB = 1 << 20
env = os.environ
mode = env.get("MODE", "")
batch = int(sys.argv[1] if len(sys.argv) > 1 else env.get("BATCH", "4"))
if str(batch) == env.get("STOP"):
    os.kill(os.getppid(), signal.SIGTERM)
    while True:
        signal.pause()
if batch > int(env.get("CLIFF", "1000000000")):
    batch += 690
steps = min(int(env.get("ALLOCRIG_TRACE_STEPS", "4")), int(env.get("ENDS", "1000000")))  # its own end
seed = int(env.get("ALLOCRIG_TRACE_SEED", "1"))
spread = seed * MIB if "DRAWS" in env else 0
lines = ["# allocrig-trace 1", "# name: stand_in", "# recorder: torch 2.11.0+cu130",
         f"# capacity: {env['ALLOCRIG_TRACE_CARD_BYTES']}", "# card: " + env["ALLOCRIG_TRACE_CARD"]]
if "PYTORCH_CUDA_ALLOC_CONF" in env:
    lines.append("# conf: " + env["PYTORCH_CUDA_ALLOC_CONF"])
if mode == "dies":
    lines.append("# complete: no")
made = 0


def alloc(size, tag, at):
    global made
    lines.append(f"a,{made},{size},tag={tag},at={at}")
    made += 1
    return made - 1


def free(*blocks):
    lines.extend(f"f,{block}" for block in blocks)


for layer in range(8):
    alloc(40 * MIB, f"layers.{layer}.fc:aten.empty", "model.py:10")
for step in range(steps):
    kept = [alloc(batch * 3 * MIB + layer * 4096 + spread, f"layers.{layer}.fc:aten.addmm", "model.py:22")
            for layer in range(8)]
    free(alloc(batch * 5 * MIB, "loss:aten._log_softmax", "train.py:31"))
    for layer in reversed(range(8)):
        gradient = alloc(40 * MIB, f"layers.{layer}.fc:aten.mm", "train.py:33")
        free(kept[layer], gradient)
    lines.append("m,step")
lines += ["!,traced,versions,torch 2.11.0+cu130", "!,traced,rule,cublas_workspace,1,33562624"]
if mode != "exact":
    lines += ["!,traced,drawn,aten.nonzero,3", "!,traced,outside_table,aten.unfold,4,8388608"]
if mode == "envelope":
    lines.append("!,traced,outside_envelope,stream 3 is used by a library that is not traced")
if mode == "invalid":
    lines.append("x,1")
if mode == "environment":
    print(*(f"{name[9:]}={value}" for name, value in sorted(env.items()) if name.startswith("ALLOCRIG_TRACE_")
            and name != "ALLOCRIG_TRACER"))
    print(env["PYTHONPATH"])
with open(env["ALLOCRIG_TRACE"], "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
if mode == "killed":
    os.kill(os.getpid(), 9)
sys.exit(3 if mode in ("fails", "dies") or (mode == "later" and seed > 1) else 0)
