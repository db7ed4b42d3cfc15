"""clang's fuzzer on every reader, in slices, in turn, so that an interruption leaves all readers with the same time. The
corpus in .build/fuzz/corpus is kept from slice to slice and from run to run. `keep` copies what is new into the tree."""
import os
import re
import subprocess

from work import run, say

SLICE = int(os.environ.get("FUZZ_SLICE", "300"))
BUILD = os.environ.get("SOAK_FUZZ_BUILD", ".build/fuzz")


def targets():
    return sorted(name[5:-2] for name in os.listdir("tests/fuzz") if name.startswith("fuzz_") and name.endswith(".c"))


def last(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(setting, log, name, seconds):
    corpus, broken = f"{BUILD}/corpus/fuzz_{name}", f"{BUILD}/broken"
    os.makedirs(corpus, exist_ok=True)
    os.makedirs(broken, exist_ok=True)
    with open(f"{BUILD}/{name}.words", "w") as words:
        subprocess.run(["tests/fuzz/words.py", name], stdout=words, check=True)
    number = len(log.of(name))
    status, out, err, cpu = run(
        [f"{BUILD}/tests/fuzz/fuzz_{name}", f"-max_total_time={seconds}", "-max_len=65536", "-timeout=300",
         "-rss_limit_mb=3000", "-print_final_stats=1", f"-dict={BUILD}/{name}.words",
         f"-artifact_prefix={broken}/{name}-", corpus, f"tests/fuzz/corpus/{name}"])
    text = out + err
    finding = ""
    if status != 0:
        file = re.findall(r"Test unit written to (\S+)", text)
        head = re.findall(r"(?:ERROR|SUMMARY): (.*)", text)
        finding = f"{file[-1] if file else 'no input'}: {(head or [f'status {status}'])[0][:200]}"
        say(f"fuzz_{name}: {finding}")
    log.add(name=name, slice=number, cpu=cpu, executions=last(r"number_of_executed_units: (\d+)", text),
            edges=last(r"cov: (\d+)", text), inputs=last(r"corp: (\d+)", text), finding=finding)


def run_part(setting, log):
    wanted = setting.amount("FUZZ_SECONDS", 36000)
    names = [name for name in targets() if os.path.exists(f"{BUILD}/tests/fuzz/fuzz_{name}")]
    while not setting.over():
        short = [name for name in names if log.sum(name, "cpu") < wanted and not log.findings(name)]
        if not short:
            break
        least = min(log.sum(name, "cpu") for name in short)
        turn = [name for name in short if log.sum(name, "cpu") < least + SLICE / 2]
        limit = min(SLICE, wanted, setting.left() or SLICE)
        setting.each(turn, lambda name: fuzz(setting, log, name, max(1, int(limit))))


def rows(setting, log):
    for name in targets():
        entries = log.of(name)
        figures = f"{log.sum(name, 'executions')} executions, {max([e['edges'] for e in entries] or [0])} edges, " \
                  f"{max([e['inputs'] for e in entries] or [0])} inputs"
        yield {"name": name, "done": round(log.sum(name, "cpu")), "wanted": setting.amount("FUZZ_SECONDS", 36000),
               "cpu_s": round(log.sum(name, "cpu")), "figures": figures, "findings": log.findings(name)}
