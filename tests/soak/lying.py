"""Policies in shared objects that crash, abort, leave, hang or lie, under every command that takes a policy.

What must be: `run` goes on with the other policies and ranks them; a crash, an exit, a broken contract and a time-out are
results. All but the time-out (status 0) end the command with status 4 and a sentence that names the policy. The other
commands end with status 4 and such a sentence. A hang ends at the time limit of `run`, elsewhere at Ctrl-C, with the sentence."""
import os
import re
import signal
import subprocess
import tempfile
import time

from work import run, say

TAPE = "workloads/data/tape_small.default.csv.gz"
SNAPSHOT = "tests/golden/data/snapshots/tape_small.pickle.gz"
COMMANDS = {
    "run": ["run", "-d", "sim:capacity=8GiB", "-p", "{}", "-p", "growth", "-w", "random:events=300", "-w", TAPE,
            "--timeout", "{timeout}", "--jobs", "2"],
    "sweep": ["sweep", "{suite}", "--jobs", "1"],
    "capacity": ["capacity", "-d", "sim", "-p", "{}", "-w", "random:events=300"],
    "explain": ["explain", TAPE, "-p", "{}"],
    "fidelity": ["fidelity", SNAPSHOT, "-p", "{}"],
    "drift": ["drift", TAPE, "-p", "{}", "--steps", "20"],
    "minimize": ["minimize", "{trace}", "--until", "differs({},torch)", "-o", "{out}"],
    "tenants": ["tenants", "{tenants}"],
    "list": ["list", "policies", "{}"],
}
HOOKS = ("alloc", "free", "stats", "walk", "validate", "room", "use", "retire", "progress", "trim", "problem",
         "create", "destroy")
HARMS = {"crash": 1, "leaves": 3, "leaves with success": 4, "aborts": 5}
HANGS = {"hangs": 2, "spins": 6}
SENTENCE = re.compile(r"allocrig: .*(bad\.so|policy misbehaving)")


def lies():
    with open("tests/cli/misbehaving.c") as file:
        text = re.search(r"#define LIES((?:.*\\\n)+.*)", file.read()).group(1)
    return [name for name in re.findall(r"[a-z-]+", text) if name != "none"]


class Ground:
    """A folder with the object, and one of each input."""

    def __init__(self, setting):
        self.allocrig = setting.allocrig
        self.folder = tempfile.mkdtemp(prefix="soak-")
        self.object = os.path.join(self.folder, "bad.so")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-I.", "-o",
                        self.object, "tests/cli/misbehaving.c"], check=True)
        run([self.allocrig, "gen", "random:events=60", "-o", os.path.join(self.folder, "trace.txt")])

    def command(self, name, spec, timeout="600"):
        folder = tempfile.mkdtemp(dir=self.folder)
        suite, tenants = os.path.join(folder, "suite.ini"), os.path.join(folder, "tenants.ini")
        with open(suite, "w") as file:
            file.write(f"[suite]\nname = x\n[policies]\ngrowth\n{spec}\n[workloads]\nrandom:events=300\n[devices]\nsim\n")
        with open(tenants, "w") as file:
            file.write(f"[machine]\ncard = sim:capacity=8GiB\n[tenant one]\npolicy = {spec}\n"
                       "workload = random:events=300\n[tenant two]\npolicy = growth\nworkload = random:events=300\n")
        places = {"{}": spec, "{suite}": suite, "{tenants}": tenants, "{timeout}": timeout,
                  "{trace}": os.path.join(self.folder, "trace.txt"), "{out}": os.path.join(folder, "out.txt")}
        arguments = COMMANDS[name]
        for place, value in places.items():
            arguments = [argument.replace(place, value) for argument in arguments]
        return [self.allocrig, *arguments]


def judge(name, status, out, err, may_leave=False):
    """What is wrong with the end of a command; "": nothing."""
    lines = err.strip().splitlines()
    told = len(lines) == 1 and SENTENCE.match(lines[0])
    if name == "run":
        if not re.search(r"^ *\d+  growth ", out, re.M):
            return "growth is not ranked"
        fault = "broke the contract" in out or "DNF: crashed" in out
        if fault != (status == 4) or (fault and not told) or status not in (0, 4):
            return f"status {status}, {'a' if fault else 'no'} fault in the table: {err[:200]}"
        return ""
    if status == 0 and (not err or name in ("sweep", "list")):
        return ""  # the hook is not used here, or the command does not ask about that
    if name == "fidelity" and status == 1 and "differ" in err:
        return ""
    if may_leave and status == 7:
        return ""  # a process cannot be kept from leaving
    return "" if status == 4 and told else f"status {status}: {err[:300]}"


def harm_one(ground, log, name, what, spec):
    status, out, err, _ = run(["timeout", "-k", "1", "120", *ground.command(name, spec)])
    wrong = judge(name, status, out, err, "leaves" in what)
    if what == "leaves with success" and name != "run":
        wrong = ""
    case = f"{name}, {what}, {spec.split(':', 1)[1]}"
    if wrong:
        say(f"{case}: {wrong}")
    log.add(name=name, case=case, finding=f"{case}: {wrong}" if wrong else "")


def interrupted(ground, name, spec, after):
    """What is wrong with Ctrl-C so many seconds after the start."""
    process = subprocess.Popen(ground.command(name, spec), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    time.sleep(after)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        err = process.communicate(timeout=60)[1].decode()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        err = "Ctrl-C does not end it"
    status = process.wait()
    return "" if status != -signal.SIGINT or SENTENCE.match(err) else f"no sentence at Ctrl-C: {err[:200]}"


def hang_one(ground, log, name, what, spec):
    if name == "run":
        for limit in (1, 4, 16, 64, 256):  # a busy machine is done with the other policy later
            status, out, err, _ = run(ground.command(name, spec, str(limit)))
            wrong = judge(name, status, out, err)
            if not wrong:
                break
        if not wrong and "bad.so" not in out:
            wrong = "the policy is not in the table"
    else:
        wrong = ""
        for after in (0.7, 3, 12, 48, 192):  # a busy machine comes to the hang later
            wrong = interrupted(ground, name, spec, after)
            if not wrong:
                break
    case = f"{name}, {what}, {spec.split(':', 1)[1]}"
    if wrong:
        say(f"{case}: {wrong}")
    log.add(name=name, case=case, finding=f"{case}: {wrong}" if wrong else "")


def pieces(ground, few):
    for name in COMMANDS:
        if name == "list":
            continue
        for lie in lies():
            yield harm_one, name, "lies", f"{ground.object}:lie={lie}"
        for hook in HOOKS:
            for what, number in HARMS.items():
                yield harm_one, name, what, f"{ground.object}:harm={number},hook={hook}"
        for hook in HOOKS[:1] if few or name == "run" else HOOKS:
            for what, number in HANGS.items():
                yield hang_one, name, what, f"{ground.object}:harm={number},hook={hook}"


def run_part(setting, log):
    ground = Ground(setting)
    done = {entry["case"] for entry in log.entries}
    few = setting.amount("KILLS", 1000) < 1000
    work = list(pieces(ground, few))
    if few:  # every seventh: all hooks, lies and commands come up, and not all combinations
        work = work[::7]
    work = [piece for piece in work if setting.wants(piece[1])
            and f"{piece[1]}, {piece[2]}, {piece[3].split(':', 1)[1]}" not in done]
    setting.each(work, lambda piece: piece[0](ground, log, *piece[1:]))


def rows(setting, log):
    for name in COMMANDS:
        entries = log.of(name)
        if entries:
            yield {"name": name, "done": len(entries), "wanted": "", "cpu_s": "",
                   "figures": f"{len([e for e in entries if not e['finding']])} as documented", "findings": log.findings(name)}
