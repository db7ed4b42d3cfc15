#!/usr/bin/env python3
"""Searches for a better policy on the train split of the data set, with allocrig as the judge.

    search.py run [SPACE] [-o DIR] [--seed N] [--candidates N] [--shard I/N] [--jobs N] [--only NAME]..
    search.py report DIR.. [-o FILE]                one report of all shards

SPACE (default bench/search/mosaic.ini) says what is varied: see README.md. DIR (default results/search) gets a line for
each evaluation in results.jsonl; a search that was interrupted goes on from there. Equal arguments give equal results.
The same command with --shard $SLURM_ARRAY_TASK_ID/N is a job of a Slurm array: shards share no files.
Exit status: 0 done, 2 bad usage or input.
"""

import argparse
import concurrent.futures
import configparser
import csv
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{ROOT}/bench/leaderboard")
sys.dont_write_bytecode = True
from submit import DEVICE, KNOWN, RATIO, WORST, allocrig, needed_bytes  # noqa: E402 - a search judges by the rules of the benchmark

PROPERTY = os.environ.get("ALLOCRIG_PROPERTY", f"{ROOT}/.build/release/tests/property/test_random")
TABLE = f"{ROOT}/workloads/dataset/v1.tsv"
PAGE = 2**21
GAIN = 1.02
MOST_DEPTH = 8


def fail(sentence):
    print(f"search.py: {sentence}", file=sys.stderr)
    sys.exit(2)


# ---- the space: a grammar whose sentences are policy specs ----------------------------------------


class Space:
    """Alternatives of each name; {name} in an alternative is replaced by one of that name."""

    def __init__(self, path):
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        try:
            with open(path, encoding="utf-8") as f:
                parser.read_file(f, path)
        except (OSError, configparser.Error, UnicodeDecodeError) as error:
            fail(f"{path}: {' '.join(str(error).split())}")
        if not {"search", "options"} <= set(parser.sections()):
            fail(f"{path}: the sections [search] and [options] are expected; README.md shows them")
        self.policy, self.baseline = (parser["search"].get(k) for k in ("policy", "baseline"))
        if not self.policy or not self.baseline:
            fail(f"{path}: [search] needs policy and baseline")
        self.rungs = [int(n) for n in parser["search"].get("rungs", "8, 24, 0").split(",")]
        self.keep = float(parser["search"].get("keep", "0.3"))
        self.options = list(parser["options"])
        self.known = {k: [a.strip() for a in v.split("|")] for s in ("options", "grammar") if s in parser for k, v in parser[s].items()}
        self.start = list(parser["start"].values()) if "start" in parser else []
        for name, alternatives in self.known.items():
            for missing in {m for a in alternatives for m in re.findall(r"{(\w+)}", a)} - self.known.keys():
                fail(f"{path}: {name} uses {{{missing}}}, which [grammar] does not have")

    def derive(self, name, rng, depth=0):
        """A tree [name, number of the alternative, subtrees]. Deep trees take the first alternative."""
        number = 0 if depth >= MOST_DEPTH else rng.randrange(len(self.known[name]))
        return [name, number, [self.derive(n, rng, depth + 1) for n in re.findall(r"{(\w+)}", self.known[name][number])]]

    def text(self, tree):
        parts = iter(self.text(t) for t in tree[2])
        return re.sub(r"{\w+}", lambda _: next(parts), self.known[tree[0]][tree[1]])

    def nodes(self, tree):
        return [tree] + [n for t in tree[2] for n in self.nodes(t)]

    def mutate(self, trees, rng):
        trees = json.loads(json.dumps(trees))
        for _ in range(rng.choice((1, 1, 2))):
            node = rng.choice([n for t in trees for n in self.nodes(t)])
            node[:] = self.derive(node[0], rng, 2)
        return trees

    def spec(self, trees):
        pairs = [(t[0], self.text(t)) for t in trees]
        return self.policy + "".join((":" if i == 0 else ",") + f"{k}='{v}'" for i, (k, v) in enumerate((k, v) for k, v in pairs if v != "-"))

    def candidate(self, number, seed, parents):
        rng = random.Random(hashlib.sha256(f"{seed} {number}".encode()).hexdigest())
        if parents and rng.random() < 0.7:
            return self.mutate(rng.choice(parents), rng)
        return [self.derive(o, rng) for o in self.options]


# ---- workloads and runs ---------------------------------------------------------------------------


def workloads(data, only):
    """The train split, cheap ones first, the classes in turn."""
    with open(TABLE, encoding="utf-8") as f:
        rows = list(csv.DictReader((line for line in f if not line.startswith("#")), delimiter="\t"))
    for name in only or []:
        row = next((r for r in rows if r["name"] == name), None)
        if not row:
            fail(f"{name} is not in {TABLE}")
        if row["split"] != "train":
            fail(f"{name} is in the {row['split']} split; a search may use the train split only (workloads/dataset/RULES.md)")
    found = {}
    for row in rows:
        path = f"{data}/{row['class']}/{row['name']}.trace.zst"
        if row["split"] == "train" and (not only or row["name"] in only) and os.path.exists(path):
            found.setdefault(row["class"], []).append((os.path.getsize(path), row["name"], path))
    if not found:
        fail(f"no workload of the train split is in {data}: `make dataset` builds them")
    queues = [sorted(found[c]) for c in sorted(found)]
    return [q[i][1:] for i in range(max(map(len, queues))) for q in queues if i < len(q)]


class Broken(Exception):
    pass


def once(policy, path, capacity):
    text, error = allocrig("run", "-p", policy, "-w", path, "-d", f"{DEVICE},capacity={capacity}", "--metrics", "none", "--json", "-")
    if error:
        raise Broken(error)
    run = json.loads(text)["runs"][0]
    return run["outcome"]["passed"], run["metrics"].get("slowdown")


def smallest(policy, path, peak, guess, unit):
    """The smallest capacity that passes, in units, by bisection: for a search. Results use `allocrig capacity`."""
    low, high = -(-peak // PAGE) * PAGE - unit, guess
    while not once(policy, path, high)[0]:
        low, high = high, high + max(unit, peak // 50 // PAGE * PAGE)
        if high > WORST * peak:
            return int(WORST * peak)
    while high - low > unit:
        middle = low + (high - low) // 2 // unit * unit
        if middle <= low:
            break
        if once(policy, path, middle)[0]:
            high = middle
        else:
            low = middle
    return high


def measure(policy, path, base, coarse):
    peak = base["peak"]
    unit = max(PAGE, (base["safe"] - peak) // 8 // PAGE * PAGE) if coarse else PAGE
    passed, slowdown = once(policy, path, math.ceil(peak * RATIO / PAGE) * PAGE)
    return {"safe": smallest(policy, path, peak, base["safe"], unit), "slow": slowdown if passed else None}


def measure_baseline(policy, path):
    """On the whole grid of capacities, once: a larger capacity may fail although a smaller one passes."""
    text, error = allocrig("capacity", "-p", policy, "-w", path, "-d", DEVICE, "--jobs", "1", "--json", "-")
    if error:
        fail(error)
    answer = json.loads(text)["answers"][0]
    peak = needed_bytes(path, answer["live_peak_bytes"])
    passed, slowdown = once(policy, path, math.ceil(peak * RATIO / PAGE) * PAGE)
    return {"peak": peak, "safe": answer["safe_bytes"] or int(WORST * peak), "slow": slowdown if passed else None}


def score(found, base):
    """Less is better: the gain, ten times the losses, and how much slower it is; all as logarithms."""
    ratios = {k: math.log(found[k]["safe"] / base[k]["safe"]) for k in found}
    gains = [ratios[k] for k in ratios if base[k]["safe"] > GAIN * base[k]["peak"]] or [0]
    losses = [max(0, r) for r in ratios.values()]
    slower = [max(0, math.log((found[k]["slow"] or WORST) / base[k]["slow"])) for k in found if base[k]["slow"]] or [0]
    gain, loss, slow = sum(gains) / len(gains), sum(losses) / len(losses), sum(slower) / len(slower)
    return {"score": round(gain + 10 * loss + slow, 6), "gain": round(gain, 6), "losses": sum(r > 0 for r in losses),
            "slower": sum(s > 1e-4 for s in slower), "slow": round(slow, 6)}  # fmt: skip


def checks(policy, seed):
    """The first check that the candidate fails, or None."""
    args = [a for w in KNOWN for a in ("-w", w)]
    for name, spec, device in (("contract", f"checked+{policy}", DEVICE), ("fault", f"fault(every=7)+checked+{policy}", DEVICE),
                               ("fault", f"fault(every=3)+{policy}", DEVICE), ("small card", f"checked+{policy}", f"{DEVICE},capacity=256MiB")):  # fmt: skip
        _, error = allocrig("run", "-p", spec, *args, "-d", device, "--metrics", "none", "--json", "-")
        if error:
            return f"{name}: {error}"
    if not os.path.exists(PROPERTY):
        fail(f"{PROPERTY} is not there: `make search` builds it")
    env = {**os.environ, "POLICY": policy, "OPS": "4000", "SEED": str(seed)}
    done = subprocess.run([PROPERTY], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return f"property: {done.stdout.strip().splitlines()[-1]}" if done.returncode else None


# ---- successive halving ---------------------------------------------------------------------------


class Search:
    def __init__(self, args):
        self.args, self.space = args, Space(args.space)
        self.shard, self.shards = (int(n) for n in args.shard.split("/"))
        self.folder = args.output if self.shards == 1 else f"{args.output}/{self.shard}of{self.shards}"
        os.makedirs(self.folder, exist_ok=True)
        self.lock, self.done = threading.Lock(), {}
        head = {"space": open(args.space, encoding="utf-8").read(), "seed": args.seed, "candidates": args.candidates}
        self.path = f"{self.folder}/results.jsonl"
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as f:
                lines = [json.loads(line) for line in f if line.endswith("\n")]
            if lines and lines[0] != head:
                fail(f"{self.path} is of another search (space, seed or number of candidates); use another folder, or remove it")
            self.done = {line["key"]: line["value"] for line in lines[1:]}
            with open(self.path, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(line) + "\n" for line in lines or [head])
        else:
            with open(self.path, "w", encoding="utf-8") as f:
                f.write(json.dumps(head) + "\n")

    def known(self, key, make):
        """The value of a key: of an earlier search, or made now and kept."""
        if key not in self.done:
            value = make()
            with self.lock, open(self.path, "a", encoding="utf-8") as f:
                f.write(json.dumps({"key": key, "value": value}) + "\n")
                self.done[key] = value
        return self.done[key]

    def each(self, function, items):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            return list(pool.map(function, items))

    def measured(self, spec, path, base, coarse):
        try:
            return measure(spec, path, base, coarse)
        except Broken as error:
            return {"broken": str(error)}

    def rung(self, number, specs, jobs, base):
        """The scores of the specs on the first workloads of the rung, the best first."""
        count = self.space.rungs[number]
        some, coarse = (jobs[:count] if count else jobs), number == 0
        pairs = [(s, w) for s in specs for w in some]
        found = self.each(lambda p: self.known(f"{'coarse' if coarse else 'fine'} {p[1][0]} {p[0]}", lambda: self.measured(p[0], p[1][1], base[p[1][0]], coarse)), pairs)
        by_spec = {}
        for (spec, (name, _)), value in zip(pairs, found):
            by_spec.setdefault(spec, {})[name] = value
        ranked = []
        for spec, values in by_spec.items():
            if any("broken" in v for v in values.values()):
                continue
            ranked.append({"spec": spec, **score(values, base), "values": values})
        return sorted(ranked, key=lambda r: (r["score"], r["spec"]))

    def run(self):
        jobs = workloads(self.args.data, self.args.only)
        base = dict(zip([n for n, _ in jobs], self.each(lambda w: self.known(f"baseline {w[0]}", lambda: measure_baseline(self.space.baseline, w[1])), jobs)))
        parents, pool, best = [], {}, []
        generations = self.args.generations
        for generation in range(generations):
            numbers = range(generation, self.args.candidates, generations)
            trees = {}
            for number in numbers:
                if number % self.shards == self.shard - 1 or self.shards == 1:
                    tree = self.space.candidate(number, self.args.seed, parents)
                    trees.setdefault(self.space.spec(tree), tree)
            specs = [s for s in trees if s not in pool] + (self.space.start[self.shard - 1 :: self.shards] if generation == 0 else [])
            failed = dict(zip(specs, self.each(lambda s: self.known(f"checks {s}", lambda: checks(s, self.args.seed)), specs)))
            specs = [s for s in specs if not failed[s]]
            pool.update(trees)
            for number in range(len(self.space.rungs)):
                ranked = self.rung(number, specs + [b["spec"] for b in best if number and b["spec"] not in specs], jobs, base)
                if not ranked:
                    break
                keep = max(2, math.ceil(len(ranked) * self.space.keep))
                print(f"generation {generation + 1}, rung {number + 1}: {len(ranked)} candidates, best {ranked[0]['score']:.5f} "
                      f"(gain {ranked[0]['gain']:.4f}, losses {ranked[0]['losses']}, slower {ranked[0]['slower']}) {ranked[0]['spec']}", flush=True)  # fmt: skip
                specs = [r["spec"] for r in ranked[:keep]]
            if ranked:
                best = ranked[:4]
                parents = [pool[b["spec"]] for b in best if b["spec"] in pool]
        with open(f"{self.folder}/winners.json", "w", encoding="utf-8") as f:
            json.dump({"baseline": base, "winners": best, "failed": {k[7:]: v for k, v in self.done.items() if k.startswith("checks ") and v},
                       "tried": sum(k.startswith("checks ") for k in self.done),
                       "evaluations": sum(k.startswith(("coarse ", "fine ")) for k in self.done)}, f, indent=1)  # fmt: skip
            f.write("\n")
        report([self.folder], f"{self.folder}/report.md")


def report(folders, output):
    """Merges the winners of finished searches."""
    parts = []
    for folder in folders:
        try:
            with open(f"{folder}/winners.json", encoding="utf-8") as f:
                parts.append(json.load(f))
        except (OSError, ValueError) as error:
            fail(f"{folder}: {error}; a finished search is expected")
    base = {k: v for p in parts for k, v in p["baseline"].items()}
    winners = {w["spec"]: w for p in parts for w in p["winners"]}
    ranked = sorted(winners.values(), key=lambda w: (w["score"], w["spec"]))[:8]
    kinds = {}
    for part in parts:
        for reason in part["failed"].values():
            kinds[reason.split(":")[0]] = kinds.get(reason.split(":")[0], 0) + 1
    lines = ["# Report of a search", "", f"{sum(p['tried'] for p in parts)} candidates tried in {len(parts)} parts, {sum(p['evaluations'] for p in parts)} "
             "evaluations of one workload; failed checks: " + (", ".join(f"{k} {n}" for k, n in sorted(kinds.items())) or "none") + ".", "",
             "| score | gain | losses | slower | candidate |", "| ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    lines += [f"| {w['score']:.5f} | {math.exp(w['gain']):.4f} | {w['losses']} | {w['slower']} | `{w['spec']}` |" for w in ranked]
    if ranked:
        best = ranked[0]["values"]
        lines += ["", "Safe capacity as a multiple of the needed bytes, and slowdown at 1.05 of them, of the baseline and of the first:", "",
                  "| workload | baseline | first | slowdown | first |", "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
        slow = lambda v: f"{v:.4f}" if v else "-"  # noqa: E731
        lines += [f"| {k} | {base[k]['safe'] / base[k]['peak']:.4f} | {v['safe'] / base[k]['peak']:.4f} | {slow(base[k]['slow'])} | {slow(v['slow'])} |"
                  for k, v in sorted(best.items())]  # fmt: skip
    text = "\n".join(lines) + "\n"
    with open(output, "w", encoding="utf-8") as f:
        f.write(text)
    print(f"wrote {output}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="search")
    one.add_argument("space", nargs="?", default=f"{HERE}/mosaic.ini")
    one.add_argument("-o", "--output", default=f"{ROOT}/results/search")
    one.add_argument("--data", default=f"{ROOT}/results/dataset")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--candidates", type=int, default=60)
    one.add_argument("--generations", type=int, default=3, help="later ones vary the best of those before")
    one.add_argument("--shard", default="1/1", metavar="I/N", help="only this part of the candidates")
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    one.add_argument("--only", action="append", metavar="NAME", help="only this workload")
    one.add_argument("--split", default="train", help="train; no other is allowed")
    one = commands.add_parser("report", help="merge shards")
    one.add_argument("folders", nargs="+")
    one.add_argument("-o", "--output", default="report.md")
    args = p.parse_args()
    if args.command == "report":
        return report(args.folders, args.output)
    if args.split != "train":
        fail(f"the split {args.split} is refused: a search may use the train split only (workloads/dataset/RULES.md)")
    if not re.fullmatch(r"[1-9]\d*/[1-9]\d*", args.shard) or int(args.shard.split("/")[0]) > int(args.shard.split("/")[1]):
        fail(f"--shard {args.shard}: I/N is expected, with I from 1 to N")
    Search(args).run()


if __name__ == "__main__":
    main()
