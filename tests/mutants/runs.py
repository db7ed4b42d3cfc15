"""The test programs of a built tree, and runs of one with a mutant."""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

GIB = 1 << 30


@dataclass
class Test:
    name: str         # "unit/test_size"
    command: list
    quick: bool
    seconds: float = 0.0  # of processor time
    reached: bytes = b""
    reason: str = ""      # why it is left out

    @property
    def is_random(self):
        """Makes fewer operations among the quick tests."""
        return self.name.startswith("property/")

    def reaches(self, number):
        return number < len(self.reached) and self.reached[number] != 0


@dataclass
class Outcome:
    passed: bool
    how: str        # "case NAME", "signal 11", "time", "status 1"
    seconds: float


def listed(tree, variant):
    """The tests of the suite; `quick`: those that `make check` runs (tests/run.sh --quick)."""
    tests = []
    weights = tree / "tests" / "weights"
    long = {tuple(line.split()[:2]) for line in weights.read_text().splitlines()} if weights.exists() else set()
    for kind in ("unit", "golden", "fuzz", "property"):
        folder = tree / "tests" / kind
        for source in sorted([*folder.glob("test_*.c"), *folder.glob("fuzz_*.c")]):
            program = tree / ".build" / variant / "tests" / kind / source.stem
            if program.exists():
                command = [str(program.relative_to(tree))]
                if kind == "fuzz":
                    command.append("tests/fuzz/corpus/" + source.stem.removeprefix("fuzz_"))
                tests.append(Test(f"{kind}/{source.stem}", command, True))
    for script in sorted((tree / "tests" / "cli").glob("test_*.sh")):
        # the test of this tool would start it again
        if script.stem != "test_mutants":
            tests.append(Test(f"cli/{script.stem}", [str(script.relative_to(tree))],
                              ("release", f"cli/{script.stem}") not in long))
    return tests


def processor_seconds(session):
    """Of all processes of a session that run now, with their ended children."""
    ticks = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def failing_case(output):
    for pattern in (rb"^\[  FAILED  \] ([A-Za-z]\S*)$", rb"^not ok (\S+)", rb"^\[ RUN      \] (\S+)$"):
        found = re.findall(pattern, output, re.M)
        if found:
            return found[-1 if b"RUN" in pattern else 0].decode(errors="replace")
    return ""


def run(tree, test, variant, number, work, quick, limit=None, reached=None):
    """One run with mutant `number` (0: none). `limit`: seconds of processor time."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    folder = tempfile.mkdtemp(prefix="mutant-")  # a short path: tests have names of 64 bytes
    environment = dict(os.environ, ALLOCRIG=str(tree / ".build" / variant / "allocrig"), TEST_VARIANT=variant,
                       TEST_TMP=folder, MUTANT=str(number), MUTANTS_REACHED=str(reached or ""),
                       ASAN_OPTIONS="handle_sigill=1:exitcode=99:quarantine_size_mb=32:malloc_context_size=10",
                       TMPDIR=folder)
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "TEST_PART", "TEST_SOAK", "TEST_QUICK"):
        environment.pop(name, None)
    if quick:
        environment["TEST_QUICK"] = "1"

    def limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))
        if variant != "san":
            resource.setrlimit(resource.RLIMIT_DATA, (4 * GIB, 4 * GIB))
        if limit:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))

    path = work / "output"
    with open(path, "wb") as output:
        process = subprocess.Popen(test.command, cwd=tree, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   env=environment, start_new_session=True, preexec_fn=limits)
    late, start, look, pause = False, time.monotonic(), time.monotonic() + 0.5, 0.001
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
        if limit and not late and time.monotonic() > look:
            look = time.monotonic() + 0.5
            # A deadlock uses no time: a long wait counts too.
            if processor_seconds(process.pid) > limit or time.monotonic() - start > 60 + 20 * limit:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
    process.returncode = status = os.waitstatus_to_exitcode(status)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # what it left running
    except ProcessLookupError:
        pass
    seconds = usage.ru_utime + usage.ru_stime
    text = path.read_bytes()[-(1 << 20):]
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    case = failing_case(text)
    if late or status in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(False, "time limit", seconds)
    if status < 0:
        return Outcome(False, f"signal {-status} in {case}" if case else f"signal {-status}", seconds)
    if status != 0 or re.search(rb"^(not ok |\[  FAILED  \])", text, re.M):
        return Outcome(False, case or f"exit status {status}", seconds)
    return Outcome(True, "", seconds)
