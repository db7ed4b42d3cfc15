"""Random operations on every policy under the shadow oracle: tests/property/test_random in pieces of a million, each with
a seed of its own. The shadow compares every call; in every eighth piece the policy's walk and validate() are compared
too after each call with up to 256 live blocks, in the others with up to 16 (which is ten times as fast), and after every
thousandth call. Policies that plan before they run take longer the larger a piece is, so theirs are small."""
import re

from work import run, say

PIECE = 1000000
PLANNED = {"plan": 20000, "stalloc": 20000}
LINE = re.compile(r"^\S+ +(?:bump|h100) +(\d+) operations, +(\d+) refused", re.M)
# The slowest under the oracle come last, so that an interruption costs no other policy its operations.
LAST = ("ggml", "torch-pinned", "stalloc", "plan")


def policies(setting):
    _, out, _, _ = run([setting.allocrig, "list", "policies"])
    names = []
    for line in out.splitlines()[1:]:
        if line.startswith("decorator"):
            break
        if re.match(r"[a-z]", line):
            names.append(line.split()[0])
    return sorted(names, key=lambda name: LAST.index(name) + 1 if name in LAST else 0)


def piece(setting, log, name, seed, size):
    program = f"{setting.build}/tests/property/test_random"
    status, out, err, cpu = run([program], env={"POLICY": name, "SEED": str(seed), "OPS": str(size),
                                              "SMALL": "256" if seed % 8 == 0 else "16"})
    done = [(int(a), int(b)) for a, b in LINE.findall(out + err)]
    finding = ""
    if status != 0 or not done:
        lines = [line for line in (out + err).splitlines() if "seed" in line or "rror" in line]
        finding = f"POLICY={name} SEED={seed} OPS={size}: status {status}: {' '.join(lines)[:300]}"
        say(finding)
    log.add(name=name, seed=seed, operations=sum(a for a, _ in done), refused=sum(b for _, b in done), cpu=cpu,
            finding=finding)


def run_part(setting, log):
    wanted = setting.amount("OPERATIONS", 10**8)
    pieces = []
    for name in filter(setting.wants, policies(setting)):
        size = min(PLANNED.get(name, PIECE), wanted)
        seeds = {entry["seed"] for entry in log.of(name)}
        # The memories of a piece have the seeds SEED + 1 and SEED + 2.
        pieces += [(name, seed, size) for seed in range(3, 3 * -(-wanted // size) + 1, 3) if seed not in seeds]
    setting.each(pieces, lambda at: piece(setting, log, *at))


def rows(setting, log):
    for name in policies(setting):
        yield {"name": name, "done": log.sum(name, "operations"), "wanted": setting.amount("OPERATIONS", 10**8),
               "cpu_s": round(log.sum(name, "cpu")), "figures": f"{log.sum(name, 'refused')} refused",
               "findings": log.findings(name)}
