#!/usr/bin/env python3
"""Trains each model under PyTorch's own allocator and under policies, side by side on one card, and compares.

1. One process for each allocator, since PyTorch cannot change it later. PyTorch's own and up to --group policies are alive at
   once, so that all fit on the card, and run in turns, never two at a time: what the card and the machine do in a minute
   falls on all alike.
2. First each runs alone from its start to the end of the steps whose losses are compared. Losses must be the same bits.
   PyTorch's own is trained several times: if these differ, the model is not deterministic and nothing follows from the others.
3. Then rounds of one block of steps each, the order reversed every other round. A pair is a policy's block and PyTorch's of the
   same round; what is reported is the median over the rounds of policy / native, with a bootstrap interval of that median
   (95 %, 10000 draws, seed 1). All processes live on the same two processors: a program that waits for its host is a tenth
   slower on some pairs of them than on others. A block differs from the next by a tenth however many steps it has, so
   blocks are short and rounds are many. Those that are there for their memory alone (expandable segments, rule 5) take no turn.
4. Memory: `physical` is the policy's own count of 2 MiB pages, and for PyTorch `reserved`; `card` is what the driver says is
   used more than before the first request, libraries and their kernels with it.

5. A cache that nobody presses holds what it likes. Where `vmm` took more than PyTorch's expandable segments it is run once more
   with `limit` at what those took: if it finishes, it needs no more.

Usage: train_compare.py OUT [--models a,b] [--policies "SPEC SPEC.."] [--rounds N] [--group N] [--limit SECONDS]
Writes OUT/plugin.csv, OUT/plugin.md, OUT/blocks.csv. Exit status 1: a loss differs, or a process did not end well."""
import argparse
import csv
import json
import os
import random
import select
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1048576


def two_processors():
    """Two that are not threads of one core, past the first ones, on which the system's own work lands."""
    mine, taken, cores = sorted(os.sched_getaffinity(0)), [], set()
    for cpu in mine[2:] or mine:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as f:
                core = f.read().strip()
        except OSError:
            core = str(cpu)
        if core not in cores:
            cores.add(core)
            taken.append(str(cpu))
    return ",".join(taken[:2])


class Worker:
    def __init__(self, model, allocator, out):
        self.name, self.failed, self.result = allocator, "", {}
        stem = os.path.join(out, f"{model}.{allocator.replace(':', '-').replace('/', '-')}")
        self.log = open(stem + ".log", "w", encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTORCH_", "ALLOCRIG_TRACE"))}
        env["TRAIN_CPUS"] = two_processors()
        if allocator not in ("native", "expandable") and os.environ.get("PLUGIN_STATS"):
            env["ALLOCRIG_STATS"] = stem + ".json"
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "train.py"), model, allocator], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.buffer = b""

    def fail(self, why):
        self.failed = why
        self.process.kill()
        print(f"  {self.name}: {why}; see {self.log.name}", flush=True)

    def read(self, seconds):
        """The next answer, or None."""
        until = time.monotonic() + seconds
        while not self.failed:
            line, mark, rest = self.buffer.partition(b"\n")
            if mark:
                self.buffer = rest
                if line.startswith(b"@"):
                    return json.loads(line[1:])
                continue
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.fail(f"no answer in {seconds:.0f} s")
                break
            text = os.read(self.process.stdout.fileno(), 65536)
            if not text:
                self.fail("it ended")
            self.buffer += text
        return None

    def ask(self, line, seconds):
        if self.failed:
            return None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail("it ended")
        return self.read(seconds)

    def end(self):
        if not self.failed:
            self.process.stdin.write(b"end\n")
            self.process.stdin.close()
            try:
                if self.process.wait(30) != 0:
                    self.failed = f"it ended with status {self.process.returncode}"
                    print(f"  {self.name}: {self.failed}; see {self.log.name}", flush=True)
            except subprocess.TimeoutExpired:
                self.fail("it did not end")
        self.log.close()


def interval(values, draws=10000):
    """The bootstrap interval of the median, 95 %."""
    r = random.Random(1)
    medians = sorted(statistics.median(r.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def beside_expandable(model, workers, expandable_bytes, out):
    """Rule 5: `vmm` again, with no more than that, where it took more."""
    held = {w.name: w.result.get("peak_physical_bytes") for w in workers}
    expandable_bytes = held.get("expandable") or expandable_bytes
    if not expandable_bytes or not held.get("vmm") or held["vmm"] <= expandable_bytes:
        return []
    again = Worker(model, f"vmm:limit={expandable_bytes}", out)
    again.read(120)
    again.result = again.ask("start", 120) or {}
    return [again]


def measure(model, allocators, rounds, out, until, blocks, expandable_bytes):
    """One group. `blocks` gets a row for each block."""
    workers = [Worker(model, name, out) for name in allocators]
    for worker in workers:
        worker.read(120)
    for worker in workers:
        worker.result = worker.ask("start", 120) or {}
        if worker.result:
            print(f"  {worker.name}: {worker.result['seconds']:.1f} s to the last loss, "
                  f"physical {worker.result['peak_physical_bytes'] / MIB:.0f} MiB", flush=True)
    workers += beside_expandable(model, workers, expandable_bytes, out)
    timed = [w for w in workers if w.name in allocators and w.name != "expandable"]
    for worker in workers:
        if worker not in timed:
            worker.end()
    for number in range(rounds):
        if time.monotonic() > until:
            print(f"  {number} rounds: the time is up", flush=True)
            break
        for worker in timed if number % 2 == 0 else timed[::-1]:
            answer = worker.ask("block", 120)
            if answer:
                blocks.append((model, number, worker.name, answer["seconds"] / answer["steps"] * 1000))
    for worker in timed:
        worker.end()
    return workers


def rows_of(model, workers, blocks, native):
    """The group's rows, its first worker being PyTorch's own. `native`: the losses of the first group's."""
    times = {}
    for _, number, name, ms in blocks:
        times.setdefault(name, {})[number] = ms
    rows = []
    for worker in workers:
        mine, base = times.get(worker.name, {}), times.get(workers[0].name, {})
        ratios = [mine[n] / base[n] for n in mine if n in base]
        losses = worker.result.get("losses")
        same = "" if not native or not losses else "yes" if losses == native else "no"
        row = {"card": worker.result.get("card", ""), "torch": worker.result.get("torch", ""), "model": model, "allocator": worker.name, "same_losses": same, "steps": len(losses or []),
               "finite": worker.result.get("finite", ""), "failed": worker.failed,
               "peak_live_bytes": worker.result.get("peak_live_bytes", ""),
               "peak_physical_bytes": worker.result.get("peak_physical_bytes", ""),
               "card_used_bytes": worker.result.get("card_used_bytes", ""), "rounds": len(ratios)}
        if ratios:
            row["step_ms"] = round(statistics.median(mine.values()), 4)
            row["step_ratio"] = round(statistics.median(ratios), 5)
            row["ratio_low"], row["ratio_high"] = (round(x, 5) for x in interval(ratios))
        rows.append(row)
    return rows


FIELDS = ["card", "torch", "model", "allocator", "same_losses", "steps", "finite", "peak_live_bytes", "peak_physical_bytes", "card_used_bytes",
          "step_ms", "step_ratio", "ratio_low", "ratio_high", "rounds", "failed"]


def write(out, rows, blocks, seconds):
    with open(os.path.join(out, "plugin.csv"), "w", newline="", encoding="utf-8") as f:
        table = csv.DictWriter(f, FIELDS, restval="")
        table.writeheader()
        table.writerows(rows)
    with open(os.path.join(out, "blocks.csv"), "w", newline="", encoding="utf-8") as f:
        table = csv.writer(f)
        table.writerow(["model", "group", "round", "allocator", "step_ms"])
        table.writerows(blocks)
    with open(os.path.join(out, "plugin.md"), "w", encoding="utf-8") as f:
        f.write("| model | allocator | losses as native | peak live MiB | peak physical MiB | card MiB | step ms | "
                "step / native (95 %) |\n| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n")
        for row in rows:
            mib = [f"{row[k] / MIB:.0f}" if row[k] != "" and row[k] is not None else ""
                   for k in ("peak_live_bytes", "peak_physical_bytes", "card_used_bytes")]
            ratio = f"{row['step_ratio']:.4f} ({row['ratio_low']:.4f} to {row['ratio_high']:.4f})" if "step_ratio" in row else ""
            same = f"{row['same_losses']} ({row['steps']})" if not row["failed"] else row["failed"]
            f.write(f"| {row['model']} | `{row['allocator']}` | {same} | {' | '.join(mib)} | {row.get('step_ms', '')} | {ratio} |\n")
        f.write(f"\n{rows[0]['card']}, PyTorch {rows[0]['torch']}; {seconds:.0f} s in all.\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--models", default="gpt2,resnet50,dlrm")
    parser.add_argument("--policies", default="torch growth vmm slab", help="specs with spaces between")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--group", type=int, default=4, help="policies alive at once")
    parser.add_argument("--limit", type=float, default=400, help="seconds after which no round is begun")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    begun = time.monotonic()
    rows, blocks, names = [], [], options.models.split(",")
    policies = options.policies.split()
    groups = [policies[i:i + options.group] for i in range(0, len(policies), options.group)]
    left = len(names) * len(groups)
    for model in names:
        native, expandable_bytes = None, 0
        for number, group in enumerate(groups):
            # Each group has its share of the time that is left.
            now, mine = time.monotonic(), []
            until = now + (begun + options.limit - now) / left
            left -= 1
            print(f"{model}, {now - begun:.0f} s", flush=True)
            allocators = ["native", "expandable"] if number == 0 else ["native"]
            workers = measure(model, allocators + group, options.rounds, options.out, until, mine, expandable_bytes)
            native = native or workers[0].result.get("losses")
            found = rows_of(model, workers, mine, native)
            if number == 0:
                expandable_bytes = workers[1].result.get("peak_physical_bytes", 0)
            elif found[0]["same_losses"] == "yes" and not found[0]["failed"]:
                del found[0]  # as the first one
            rows += found
            blocks += [(model, number, *block[1:]) for block in mine]
            write(options.out, rows, blocks, time.monotonic() - begun)
    print(open(os.path.join(options.out, "plugin.md"), encoding="utf-8").read())
    bad = [r for r in rows if r["failed"] or r["same_losses"] != "yes"]
    for row in bad:
        print(f"{row['model']} under {row['allocator']}: {row['failed'] or 'other losses than native'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
