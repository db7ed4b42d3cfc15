"""What all parts share: the log of finished pieces, budgets, and processes whose processor time is measured."""
import concurrent.futures
import functools
import json
import os
import platform
import subprocess
import sys
import threading
import time


class Log:
    """A file of lines that only grows. A line that is not whole (a kill in the middle of it) does not count."""

    def __init__(self, folder, part):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.path = os.path.join(folder, part + ".jsonl")
        self.lock = threading.Lock()
        self.entries = []
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                text = file.read()
            for line in text.split(b"\n")[:-1]:
                self.entries.append(json.loads(line))
            if not text.endswith(b"\n"):
                os.truncate(self.path, text.rfind(b"\n") + 1)

    def add(self, **entry):
        entry.update(machine=machine() + entry.pop("card", ""), commit=revision())
        with self.lock:
            self.entries.append(entry)
            with open(self.path, "a") as file:
                file.write(json.dumps(entry) + "\n")

    def of(self, name):
        with self.lock:
            return [entry for entry in self.entries if entry["name"] == name]

    def sum(self, name, field):
        return sum(entry.get(field, 0) for entry in self.of(name))

    def run(self):
        """The name of this log among the rows: when it began."""
        path = os.path.join(self.folder, "began")
        if not os.path.exists(path):
            with open(path, "w") as file:
                file.write(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()))
        with open(path) as file:
            return file.read()

    def findings(self, name):
        return "; ".join(entry["finding"] for entry in self.of(name) if entry.get("finding"))


class Setting:
    def __init__(self, jobs, seconds):
        self.jobs = max(1, jobs)
        self.end = time.monotonic() + seconds if seconds else None
        self.build = os.environ.get("SOAK_BUILD", ".build/release")
        self.allocrig = os.path.abspath(os.path.join(self.build, "allocrig"))

    def over(self):
        return self.end is not None and time.monotonic() >= self.end

    def left(self):
        return None if self.end is None else max(1.0, self.end - time.monotonic())

    @staticmethod
    def wants(name):
        """Whether this command, policy or run is to be tried."""
        begins = (begin.strip() for begin in os.environ.get("COMMANDS", "").split(","))
        return name.startswith(tuple(filter(None, begins)) or "")

    @staticmethod
    def amount(name, otherwise):
        text = os.environ.get(name, "")
        return int(float(text)) if text else otherwise

    @staticmethod
    def where(entries):
        return "; ".join(sorted({entry["machine"] for entry in entries}))

    @staticmethod
    def commits(entries):
        return "; ".join(dict.fromkeys(entry.get("commit") or revision() for entry in entries))

    def each(self, pieces, work):
        """Does work(piece) for every piece, `jobs` at a time, and begins none after the end."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(lambda piece=piece: None if self.over() else work(piece)) for piece in pieces]:
                done.result()


def machine():
    model = platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{len(os.sched_getaffinity(0))} x {model}"


@functools.cache
def revision():
    """SOAK_COMMIT: that of a tree which was carried without its history."""
    got = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    return os.environ.get("SOAK_COMMIT") or got.stdout.strip()


def run(command, **options):
    """Runs a command to its end. Returns status (negative: the signal), output, errors and processor seconds."""
    environment = {**os.environ, **options.pop("env", {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               env=environment, **options)
    texts = {}

    def drain(name, stream):
        texts[name] = stream.read().decode("utf-8", "replace")

    readers = [threading.Thread(target=drain, args=pair) for pair in (("out", process.stdout), ("err", process.stderr))]
    for reader in readers:
        reader.start()
    _, state, usage = os.wait4(process.pid, 0)
    for reader in readers:
        reader.join()
    process.stdout.close()
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(state)
    return process.returncode, texts["out"], texts["err"], usage.ru_utime + usage.ru_stime


def say(text):
    print(text, file=sys.stderr, flush=True)
