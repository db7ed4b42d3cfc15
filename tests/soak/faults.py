"""Full disks, closed pipes and descriptors, and limits of the shell, for each command that writes.

What must be: the command ends by itself (or by SIGPIPE, if its output is read no longer). With status 0 its files are
the bytes of a run without the fault. Otherwise it says why in one sentence and leaves no file, whole or in part."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

from work import run, say

TAPE = "workloads/data/tape_small.default.csv.gz"
GPU = ["run", "-d", "sim", "-p", "torch", "-w", "random:events=3000"]
# Each command with its outputs, {} is the folder.
COMMANDS = {
    **{f"run --{name}": [*GPU, f"--{name}", "{}/out"] for name in
       ("json", "csv", "latex", "junit", "openmetrics", "placements", "series", "stats", "calls", "snapshot", "chrome")},
    "run --output": [*GPU, "--output", "{}/out"],
    "run --isolate": [*GPU, "-p", "growth", "--isolate", "--csv", "{}/out"],
    "run --journal": [*GPU, "--journal", "{}/journal", "--csv", "{}/out"],
    "sweep": ["sweep", "{}/in.ini", "--journal", "{}/journal", "--csv", "{}/out", "--json", "{}/out2"],
    "gen": ["gen", "random:events=3000", "-o", "{}/out.trace"],
    "gen .bin": ["gen", "random:events=3000", "-o", "{}/out.bin"],
    "gen .zst": ["gen", "random:events=9000", "-o", "{}/out.bin.zst"],
    "convert": ["convert", TAPE, "{}/out.bin"],
    "convert .pickle": ["convert", TAPE, "{}/out.pickle"],
    "convert .rmm.csv": ["convert", TAPE, "{}/out.rmm.csv"],
    "minimize": ["minimize", "{}/in.trace", "--until", "differs(growth,torch)", "-o", "{}/out.trace"],
    "bound": ["bound", "random:events=500", "--plan", "{}/out", "--json", "{}/out2"],
    "drift": ["drift", "{}/steps.trace", "-p", "torch", "--steps", "50", "--series", "{}/out", "--json", "{}/out2"],
    "explain": ["explain", TAPE, "-p", "torch", "-d", "sim:capacity=300MiB", "--json", "{}/out"],
    "compare": ["compare", "{}/in.json", "{}/in.json", "--markdown", "{}/out", "--junit", "{}/out2"],
    "history": ["history", "{}/in.jsonl", "--csv", "{}/out", "--json", "{}/out2", "--markdown", "{}/out3"],
    "history --append": ["history", "{}/in.jsonl", "--append", "{}/in.json", "--commit", "c2", "--time",
                         "2027-02-01T00:00:00Z"],
    "twin": ["twin", "workloads/scenarios/colocated.ini", "--cycles", "1", "--what-if", "no", "--json", "{}/out",
             "--series", "{}/out2"],
    "tenants": ["tenants", "workloads/suites/tenants/two_greedy.ini", "--csv", "{}/out", "--series", "{}/out2"],
    "capacity": ["capacity", "-p", "torch", "-d", "sim", "-w", "random:events=500", "--json", "{}/out"],
    "fidelity": ["fidelity", "tests/golden/data/snapshots/tape_small.pickle.gz", "--placements", "{}/out"],
    "calibrate --median": ["calibrate", "--median", "sim/profiles/h100.profile", "sim/profiles/h200.profile", "-o",
                           "{}/out"],
    "record": ["record", "-o", "{}/out.trace", "--", "{program}", "plain"],
    "inspect": ["inspect", TAPE],
    "list": ["list", "policies"],
}
LONG = ("run --output", "sweep", "gen .zst", "tenants")
INPUTS = {"in.ini", "in.trace", "in.json", "in.jsonl", "steps.trace", "journal"}


def prepare(allocrig, folder):
    with open(folder + "/in.ini", "w") as file:
        file.write("[suite]\nname = x\n[policies]\ntorch\ngrowth\n[workloads]\nrandom:events=2000\n[devices]\nsim\n")
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run([allocrig, "gen", "order_flip", "-o", folder + "/in.trace"], **quiet)
    subprocess.run([allocrig, "gen", "embedding:steps=12", "-o", folder + "/steps.trace"], **quiet)
    subprocess.run([allocrig, *GPU, "--json", folder + "/in.json"], **quiet)
    subprocess.run([allocrig, "history", folder + "/in.jsonl", "--append", folder + "/in.json", "--commit", "c1", "--time",
                    "2027-01-01T00:00:00Z"], **quiet)


def limit(which, soft, hard=None):
    return lambda: resource.setrlimit(which, (soft, hard or soft))


def close(*files):
    def closes():
        for file in files:
            os.close(file)
    return closes


MIB = 1 << 20
FAULTS = {
    **{f"files of {size} bytes at most": {"preexec_fn": limit(resource.RLIMIT_FSIZE, size)} for size in
       (0, 1, 100, 4096, 20000)},
    "a full disk": {"disk": "4k"}, "a disk of 32 KiB": {"disk": "32k"},
    "outputs are /dev/full": {"place": "/dev/full"},
    "standard output is /dev/full": {"stdout": "/dev/full"},
    "standard output is a closed pipe": {"stdout": "pipe"},
    "standard output is closed": {"preexec_fn": close(1)},
    "standard error is closed": {"preexec_fn": close(2)},
    "input, output and error are closed": {"preexec_fn": close(0, 1, 2)},
    **{f"{size} MiB of address space": {"preexec_fn": limit(resource.RLIMIT_AS, size * MIB)} for size in
       (12, 16, 24, 40, 80)},
    **{f"{count} open files": {"preexec_fn": limit(resource.RLIMIT_NOFILE, count)} for count in (3, 4, 5, 7)},
    "no further process": {"no_process": True},
}


def contents(folder, with_inputs=False):
    files = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            relative = os.path.relpath(path, folder)
            if with_inputs or relative not in INPUTS:
                with open(path, "rb") as file:
                    text = re.sub(rb"(?m)^allocrig .*$", b"", file.read())
                text = re.sub(rb'(?ms)^( *)"context": \{.*?^\1\}', b"", text).replace(folder.encode(), b"FOLDER")
                text = re.sub(rb"(?m)^(t,|!,alloc|# started).*\n", b"", text)  # times and addresses of a recording
                text = re.sub(rb'"commit": "[^"]*"|20\d\d-\d\d-\d\dT[\d:]*Z?', b"", text)
                files[relative] = text
    return files


class Ground:
    def __init__(self, setting):
        self.allocrig, self.top = setting.allocrig, tempfile.mkdtemp(prefix="soak-")
        self.program = os.path.abspath(f"{setting.build}/tests/record_program")
        self.library = os.path.abspath(f"{setting.build}/tests/cuda_stand_in")
        self.inputs = self.top + "/inputs"
        os.mkdir(self.inputs)
        prepare(self.allocrig, self.inputs)
        self.whole = {}

    def command(self, name, folder, place=None):
        words = [word.replace("{program}", self.program) for word in COMMANDS[name]]
        if place:
            words = [place if re.fullmatch(r"\{\}/out\d?", word) else word for word in words]
        return [self.allocrig, *[word.replace("{}", folder) for word in words]]

    def folder(self, disk=None):
        folder = tempfile.mkdtemp(dir=self.top)
        if disk:
            extra = sum(os.path.getsize(os.path.join(self.inputs, name)) // 4096 * 4 + 8 for name in os.listdir(self.inputs))
            size = f"{extra + int(disk[:-1])}k"
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder], capture_output=True).returncode:
                return None
        for name in os.listdir(self.inputs):
            shutil.copy(os.path.join(self.inputs, name), folder)
        return folder

    def environment(self, name):
        return {**os.environ, **({"LD_LIBRARY_PATH": self.library} if name == "record" else {})}

    def reference(self, name):
        if name not in self.whole:
            folder = self.folder()
            done = subprocess.run(self.command(name, folder), capture_output=True, env=self.environment(name))
            self.whole[name] = (done.returncode, contents(folder), contents(folder, True), done.stderr.decode())
        return self.whole[name]


def wrong(ground, name, fault, status, err, folder, how):
    expected, files, everything, said = ground.reference(name)
    now = contents(folder)
    if name == "record" and status in (0, 141) and "records are missing" in err:
        return ""  # it says so, and the trace is there
    history = "in.jsonl" if name.startswith("history") else None
    if status == 141 and name == "record" and "signal 13" in err:
        return ""  # the recorded program writes to the closed pipe
    if status == expected and (how.get("place") or now == files):
        lost = status in (0, 1) and contents(folder, True).keys() != everything.keys()
        return "files are missing" if lost and not how.get("place") else ""
    if status == -signal.SIGPIPE and how.get("stdout") == "pipe":
        return f"left {sorted(now)}" if now and now != files else ""
    if status < 0:
        return f"ended by signal {-status}: {err[-200:]}"
    lines = err.strip().splitlines()
    if 2 not in how.get("closed", ()) and "error" not in fault and (
            len(lines) != 1 or not re.match(r"allocrig: |.*(error while loading|cannot (open|allocate))", lines[0])):
        return f"status {status}, said {len(lines)} lines: {err[:300]}"
    if status not in (1, 2, 3, 4, 127):
        return f"status {status}: {err[:200]}"
    if now and now != files:
        return f"status {status}, left {sorted(now)}"
    if history:
        with open(os.path.join(folder, history), "rb") as text, open(os.path.join(ground.inputs, history), "rb") as old:
            if not text.read().startswith(old.read()):
                return "the history has lost a line"
    return ""


def try_one(ground, log, name, fault):
    how = FAULTS[fault]
    folder = ground.folder(how.get("disk"))
    if not folder or (how.get("no_process") and name not in ("run --isolate", "record")):
        return
    stdout, pipe = subprocess.PIPE, None
    if how.get("stdout") == "pipe":
        read, pipe = os.pipe()
        os.close(read)
        stdout = pipe
    elif how.get("stdout"):
        stdout = open(how["stdout"], "w")
    before = how.get("preexec_fn")
    if how.get("no_process"):
        def before():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            os.setgid(65534)
            os.setuid(65534)
        for base, _, _ in os.walk(folder):
            os.chmod(base, 0o777)
        os.chmod(ground.top, 0o755)

    def prepare_child():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        if before:
            before()
    try:
        process = subprocess.Popen(ground.command(name, folder, how.get("place")), stdout=stdout, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, preexec_fn=prepare_child, env=ground.environment(name))
    except (OSError, subprocess.SubprocessError):
        if not how.get("no_process"):
            raise
        return  # only root can become that user, and only while no other process is of that user
    if pipe is not None:
        os.close(pipe)
    try:
        _, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        err += b"hangs"
    finding = wrong(ground, name, fault, process.returncode, err.decode("utf-8", "replace"), folder, how)
    if finding:
        say(f"{name}, {fault}: {finding}")
    log.add(name=name, fault=fault, status=process.returncode, finding=f"{fault}: {finding}" if finding else "")
    if how.get("disk"):
        subprocess.run(["umount", folder])
    shutil.rmtree(folder, ignore_errors=True)


def run_part(setting, log):
    ground = Ground(setting)
    done = {(entry["name"], entry["fault"]) for entry in log.entries}
    work = [(name, fault) for name in COMMANDS for fault in FAULTS
            if name != "record" or os.path.exists(ground.program)]
    if setting.amount("KILLS", 1000) < 1000:  # a part of them, in which every command and fault comes up
        work = work[::11]
    setting.each([at for at in work if at not in done and setting.wants(at[0])], lambda at: try_one(ground, log, *at))
    shutil.rmtree(ground.top, ignore_errors=True)


def rows(setting, log):
    for name in COMMANDS:
        entries = log.of(name)
        if entries:
            ended = sum(entry["status"] == 0 for entry in entries)
            yield {"name": name, "done": len(entries), "wanted": "", "cpu_s": "",
                   "figures": f"{ended} finished, {len(entries) - ended} refused", "findings": log.findings(name)}
