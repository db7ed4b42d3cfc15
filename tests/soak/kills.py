"""SIGKILLs at random moments: of suites, sweeps and scenarios with a journal, of lines that are added to a history, of
recorders and of the programs that they record, and of commands that replace a file.

A journal that was killed is continued, and killed again, until its command ends by itself: what was in it stays in front,
and the results are the bytes of a command without kills. A history has only whole lines, those from before and at
most the new one. A trace of a killed recording holds the first requests of the program, in order, and every one that the
program had returned from. A file that is replaced is the old one or the new one."""
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

from work import say

POLICIES = "growth\ntorch\nvmm\ntlsf\nslab\n"


class Lost(Exception):
    pass


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tree(folder):
    files = {}
    for path in sorted(glob.glob(folder + "/**", recursive=True)):
        if os.path.isfile(path):
            text = read(path)
            if path.endswith("summary.md"):  # this line and the context tell of the machine and the time
                text = re.sub(rb"(?m)^allocrig .*$", b"", text)
            if path.endswith(".json"):
                text = re.sub(rb'(?m)^  "context": \{.*?^  \},?\n', b"", text, flags=re.S)
            files[os.path.relpath(path, folder)] = text
    return files


def lives(group):
    """Whether a process of the group runs; what has ended holds no lock and writes nothing."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            return True
    return False


class Victim:
    """A folder of its own, and a command that is killed there."""

    def __init__(self, setting, number):
        self.allocrig, self.build, self.dice = setting.allocrig, os.path.abspath(setting.build), random.Random(number)
        self.folder = tempfile.mkdtemp(prefix="soak-")
        self.took = 0.05
        self.kills = 0
        self.compared = 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def whole(self, command, **options):
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, **options)
        self.took = time.monotonic() - begin
        if done.returncode:
            raise Lost(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode()[-300:]}")
        return done

    def kill(self, command, **options):
        """Begins it and kills it. True: it was killed; False: it had ended. Waits for what it had begun: a run in a
        process of its own ends a moment later, and the program of a killed recorder goes on to its end."""
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp, **options)
        time.sleep(self.dice.uniform(0, 1.1 * self.took))
        process.send_signal(signal.SIGKILL)
        killed = process.wait() == -signal.SIGKILL
        self.kills += killed
        while lives(process.pid):
            time.sleep(0.005)
        return killed

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Journal(Victim):
    """A command with --journal; `kind` says which."""

    def command(self, out, journal):
        made = [self.path(out), self.path(out + ".csv")]
        if self.kind == "twin":
            return [self.allocrig, "twin", "workloads/scenarios/colocated.ini", "--cycles", "1", "--journal",
                    self.path(journal), "--json", made[0] + ".json", "--series", made[1]]
        verb = {"suite": "run", "sweep": "sweep", "isolated": "run"}[self.kind]
        extra = {"suite": ["--output", made[0]], "sweep": [], "isolated": ["--output", made[0], "--isolate"]}[self.kind]
        return [self.allocrig, verb, self.path("suite.ini"), "--jobs", "2", "--journal", self.path(journal), "--csv",
                made[1], *extra]

    def prepare(self, kind):
        self.kind = kind
        grid = "[grid]\nevents = 3000 4000\nworkloads:seed = 1 2\n" if kind == "sweep" else ""
        work = "random\n" if kind == "sweep" else "".join(
            f"random:events=4000,seed={seed}\n" for seed in range(1, 5))
        with open(self.path("suite.ini"), "w") as file:
            file.write(f"[suite]\nname = soak\n[policies]\n{POLICIES}[workloads]\n{work}[devices]\nsim\n{grid}")
        self.whole(self.command("whole", "journal.whole"))

    def results(self, out):
        files = {"csv": read(self.path(out + ".csv"))}
        if self.kind == "twin":
            files["json"] = read(self.path(out + ".json"))
        if os.path.isdir(self.path(out)):
            files.update(tree(self.path(out)))
        return files

    def records(self):
        """The bytes of the journal up to its last whole record."""
        try:
            text = read(self.path("journal"))
        except FileNotFoundError:
            return b""
        at = 16
        while at + 24 <= len(text) and at + 24 + int.from_bytes(text[at + 8:at + 16], "little") <= len(text):
            at += 24 + int.from_bytes(text[at + 8:at + 16], "little")
        return text[:at] if len(text) >= 16 else b""

    def once(self, most):
        before = b""
        begun, full = self.kills, self.took
        while self.kills - begun < most:
            if not self.kill(self.command("killed", "journal")):
                break
            now = self.records()
            if not os.path.exists(self.path("journal")):
                before = b""  # it had ended, or had not begun
            elif not now.startswith(before):
                raise Lost(f"what was in the journal has changed: {len(before)} bytes, then {len(now)}")
            before = now
            self.took = full * self.dice.choice((0.2, 0.5, 1))
        self.took = full
        self.whole(self.command("killed", "journal"))
        self.took = full
        whole, killed = self.results("whole"), self.results("killed")
        if whole != killed:
            raise Lost("other results: " + ", ".join(name for name in whole if whole[name] != killed.get(name)))
        if os.path.exists(self.path("journal")):
            raise Lost("the journal of a finished command is still there")
        for name in glob.glob(self.path("killed*")):
            shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)


class History(Victim):
    def prepare(self):
        self.whole([self.allocrig, "run", "-d", "sim", "-p", "all", "-w", "order_flip", "-w", "random:events=500", "--json",
                    self.path("result.json")])
        self.commits = 0
        self.whole(self.append())

    def append(self):
        return [self.allocrig, "history", self.path("history"), "--append", self.path("result.json"), "--commit",
                f"c{self.commits:05}", "--time", f"2027-01-{1 + self.commits // 1440 % 28:02}T"
                f"{self.commits // 60 % 24:02}:{self.commits % 60:02}:00Z"]

    def once(self, most):
        for _ in range(most):
            before = read(self.path("history"))
            self.commits += 1
            command = self.append()
            self.kill(command)
            now = read(self.path("history"))
            added = now[len(before):]
            if not now.startswith(before) or added.count(b"\n") > 1:
                raise Lost(f"the history has lost lines: {added[:80]!r}")
            # A kill can stop a write after some of its pages. Readers ignore such an end, and the next append removes it.
            whole = now[:now.rfind(b"\n") + 1]
            for line in whole[len(before):].splitlines():
                json.loads(line)
            took = self.took
            self.whole(command)
            self.took = took
            after = read(self.path("history"))
            if after.count(b"\n") != before.count(b"\n") + 1 or not after.startswith(whole) or not after.endswith(b"\n"):
                raise Lost("the line was not added once, or after a part of one")
            if after.count(b"\n") > 40:  # a long one takes longer to read
                os.unlink(self.path("history"))
                self.whole(command)


class Recorder(Victim):
    """Kills the recorder or the program that it records."""

    def prepare(self, who):
        self.who = who
        self.environment = {**os.environ, "LD_LIBRARY_PATH": self.build + "/tests/cuda_stand_in"}
        program = self.build + "/tests/record_program"
        self.program = [program, "long"]
        self.events = [event for i in range(20000) for event in
                       [f"a,{i},{1000 + i}"] + ([f"f,{i}"] if i % 4 else [])]  # scene_long of the program
        self.whole(self.command(), env=self.environment)

    def command(self):
        return [self.allocrig, "record", "-o", self.path("out.trace"), "--", *self.program]

    def clean(self):
        for name in glob.glob(self.path("out.trace*")):
            shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)

    def compare(self, least):
        self.compared += 1
        with open(self.path("out.trace")) as file:
            got = [re.sub(r",thread=\d+", "", line.rstrip("\n")) for line in file if line[0] in "af"]
        if got != self.events[:len(got)]:
            raise Lost("the trace does not begin as the program did")
        if len(got) < least:
            raise Lost(f"{least - len(got)} requests are missing that the program had made")
        self.whole_quiet([self.allocrig, "inspect", self.path("out.trace")])

    def whole_quiet(self, command):
        took = self.took
        self.whole(command)
        self.took = took

    def once(self, most):
        for _ in range(most):
            self.clean()
            if self.who == "recorder":
                killed = self.kill(self.command(), env=self.environment)
                if not killed:
                    continue
                left = glob.glob(self.path("out.trace.spool-*"))
                if os.path.exists(self.path("out.trace")):
                    self.compare(len(self.events))
                elif left and glob.glob(left[0] + "/*.spool"):
                    done = subprocess.run([self.allocrig, "record", "-o", self.path("out.trace"), "--from", left[0]],
                                          capture_output=True, text=True)
                    if done.returncode == 0:
                        self.compare(0)
                    elif done.returncode not in (1, 3) or "recorded" not in done.stderr:
                        raise Lost(f"--from: status {done.returncode}: {done.stderr[-200:]}")
            else:
                process = subprocess.Popen(self.command(), env=self.environment, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                time.sleep(self.dice.uniform(0, 1.1 * self.took))
                children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
                for child in children.stdout.split():
                    try:
                        os.kill(int(child), signal.SIGKILL)
                        self.kills += 1
                    except ProcessLookupError:
                        pass
                errors = process.stderr.read().decode()
                status = process.wait()
                if status == 137 and os.path.exists(self.path("out.trace")):
                    self.compare(0)
                elif status == 0:
                    self.compare(len(self.events))
                elif status not in (1, 2, 3, 137) or not errors.startswith("allocrig"):
                    raise Lost(f"the recorder of a killed program: status {status}: {errors[-200:]}")
            if glob.glob(self.path("out.trace.spool-*")) and self.who != "recorder":
                raise Lost("spools are left")


class Replaced(Victim):
    """Files that a command replaces: the old bytes or the new ones, nothing between."""

    def prepare(self):
        self.commands = [
            [self.allocrig, "gen", "random:events=30000", "-o", self.path("f.bin")],
            [self.allocrig, "gen", "random:events=30000", "-o", self.path("f.trace.zst")],
            [self.allocrig, "run", "-d", "sim", "-p", "torch", "-w", "random:events=20000", "--series", self.path("f.csv")],
            [self.allocrig, "run", "-d", "sim", "-p", "torch", "-w", "random:events=20000", "--snapshot", self.path("f.pickle")],
        ]
        self.sums = []
        for command in self.commands:
            self.whole(command)
            self.sums.append((self.took, read(command[-1])))

    def once(self, most):
        for _ in range(most):
            at = self.dice.randrange(len(self.commands))
            file = self.commands[at][-1]
            old = self.dice.choice((None, b"old\n"))
            if os.path.exists(file):
                os.unlink(file)
            if old is not None:
                with open(file, "wb") as out:
                    out.write(old)
            self.took = self.sums[at][0]
            self.kill(self.commands[at])
            now = read(file) if os.path.exists(file) else None
            if now not in (old, self.sums[at][1]):
                raise Lost(f"{os.path.basename(file)}: neither the old file nor the new one")


KINDS = {
    "suite": (Journal, ["suite"], 6), "isolated": (Journal, ["isolated"], 6), "sweep": (Journal, ["sweep"], 6),
    "twin": (Journal, ["twin"], 4), "history": (History, [], 10), "recorder": (Recorder, ["recorder"], 10),
    "recorded program": (Recorder, ["program"], 10), "replaced files": (Replaced, [], 10),
}
SHARES = {"suite": 0.25, "isolated": 0.1, "sweep": 0.1, "twin": 0.05, "history": 0.2, "recorder": 0.1,
          "recorded program": 0.1, "replaced files": 0.1}


def wanted(setting, name):
    return max(2, round(SHARES[name] * setting.amount("KILLS", 1000)))


def can(setting, name):
    return not name.startswith("record") or os.path.exists(f"{setting.build}/tests/record_program")


def run_part(setting, log):
    for name, (kind, arguments, most) in KINDS.items():
        if not can(setting, name):
            continue
        victim = kind(setting, len(log.entries))
        try:
            if not setting.over() and log.sum(name, "kills") < wanted(setting, name):
                victim.prepare(*arguments)
            while not setting.over() and log.sum(name, "kills") < wanted(setting, name):
                before, compared = victim.kills, victim.compared
                finding = ""
                try:
                    victim.once(min(most, wanted(setting, name) - log.sum(name, "kills")))
                except Lost as lost:
                    finding = str(lost)
                    say(f"{name}: {finding} (kept in {victim.folder})")
                log.add(name=name, kills=victim.kills - before, compared=victim.compared - compared, finding=finding)
                if finding:
                    break
        finally:
            if not log.findings(name):
                victim.close()


def rows(setting, log):
    for name in KINDS:
        lost = f"{sum(bool(e['finding']) for e in log.of(name))} lost"
        read_again = f", {log.sum(name, 'compared')} traces compared" if name.startswith("record") else ""
        yield {"name": name, "done": log.sum(name, "kills"), "wanted": wanted(setting, name), "cpu_s": "",
               "figures": lost + read_again, "findings": log.findings(name)}
