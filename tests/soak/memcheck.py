"""NVIDIA's compute-sanitizer (memcheck) on a card: the kernels, every policy on the rig's own device, and every policy
inside PyTorch and CuPy through the plug-in. Without a card or the checker nothing is done."""
import functools
import os
import re
import shutil
import sys

from operations import policies
from work import run, say

CHECK = ("compute-sanitizer", "--tool", "memcheck", "--target-processes", "all", "--error-exitcode", "86",
         "--print-limit", "20")
# Requests that the driver refuses are part of the tests, and are no errors of the program.
QUIET = ("--report-api-errors", "no")
NOT_INSIDE = {"null", "plan", "stalloc", "torch-pinned"}  # no memory, or a plan of the whole run, or host memory


def pieces(setting, log):
    build = setting.build
    yield "kernels", [f"{build}/tests/gpu/test_kernels"], {}
    yield "kernel ops", [f"{build}/tests/gpu/test_kernel_ops"], {}
    names = policies(setting)
    for name in names:
        if name == "torch-pinned":
            continue
        verify = [] if name == "null" else ["--verify"]
        yield f"rig {name}", [setting.allocrig, "run", "-d", "cuda:capacity=4GiB", "-p", name, "-w", "order_flip", "-w",
                              "random:events=400", "-w", "embedding:steps=3", "--reps", "1", *verify], {}
    trace = os.path.join(log.folder, "pinned.trace")
    with open(trace, "w") as file:
        file.write("# allocrig-trace 1\n")
        for i in range(60):
            file.write(f"a,{i},{(i * 37 % 11 + 1) * 70000}{',space=pinned' if i % 2 else ''}\n")
            file.write(f"f,{i - 5}\n" if i >= 5 else "")
    yield "rig torch-pinned", [setting.allocrig, "run", "-d", "cuda:capacity=4GiB", "-p", "torch", "--pinned",
                               "torch-pinned", "-w", trace, "--reps", "1"], {}
    for framework in ("cupy", "torch"):
        for name in names:
            if name not in NOT_INSIDE:
                yield f"{framework} {name}", [os.environ.get("PYTHON", "python3"), "tests/gpu/programs/behave.py", framework], {
                    "ALLOCRIG_POLICY": name, "BEHAVE_SHARE": "0.1"}


def judge(name, status, text):
    """A memory error is a finding, and so is an end that no failed check explains. Checks may fail for want of memory."""
    sums = [int(n) for n in re.findall(r"ERROR SUMMARY: (\d+) error", text)]
    passed, failed = (len(re.findall(rf"^{word} ", text, re.M)) for word in ("ok", "not ok"))
    finding = ""
    if not sums or sum(sums) or (status != 0 and not failed):
        finding = f"status {status}, {sum(sums)} errors in {len(sums)} processes: {text.splitlines()[-3:]}"
    return {"errors": sum(sums), "processes": len(sums), "passed": passed, "failed": failed, "finding": finding}


def check(setting, log, name, command, environment):
    plugin = os.path.abspath(f"{setting.build}/liballocrig_torch.so")
    status, out, err, cpu = run([*CHECK, *QUIET, *command], env={**environment, "ALLOCRIG_PLUGIN": plugin})
    text = out + err
    entry = judge(name, status, text)
    if entry["finding"]:
        say(f"{name}: {entry['finding']}")
    folder = os.path.join(log.folder, "memcheck")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name.replace(" ", "-") + ".log"), "w") as file:
        file.write(text)
    log.add(name=name, cpu=cpu, card=card(), **entry)


@functools.cache
def card():
    _, name, _, _ = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    _, version, _, _ = run([CHECK[0], "--version"])
    return f", {name.splitlines()[0].replace(', ', ', driver ')}, {CHECK[0]} {re.findall('[0-9]+[.][0-9]+[.][0-9]+', version)[-1]}"


def run_part(setting, log):
    status, out, _, _ = run([setting.allocrig, "list", "devices", "cuda"])
    if not shutil.which(CHECK[0]) or "Available" not in out:
        print("memcheck: skipped, since there is no compute-sanitizer or no card", file=sys.stderr)
        return
    left = [at for at in pieces(setting, log) if setting.wants(at[0]) and not log.of(at[0])]
    inside = [at for at in left if at[0].startswith(("cupy", "torch"))]
    setting.each([at for at in left if at not in inside], lambda at: check(setting, log, *at))
    setting.jobs = 1  # several policies take most of the card at their first request
    setting.each(inside, lambda at: check(setting, log, *at))


def rows(setting, log):
    for name in dict.fromkeys(entry["name"] for entry in log.entries):
        yield {"name": name, "done": log.sum(name, "processes"), "wanted": "", "cpu_s": round(log.sum(name, "cpu")),
               "figures": f"{log.sum(name, 'errors')} errors" + checks(log, name), "findings": log.findings(name)}


def checks(log, name):
    passed, failed = log.sum(name, "passed"), log.sum(name, "failed")
    return f", {passed} of {passed + failed} checks passed" if passed + failed else ""
