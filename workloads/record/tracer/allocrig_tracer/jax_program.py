"""Traces a JAX program without a GPU (see ../JAX.md).

1. The program runs on JAX's CPU client, and sees a GPU. Each function that it compiles is lowered for CUDA and compiled
   for the card (jax_compile.py), and never runs: an execution makes stand-ins for its results (jax_arrays.py).
2. The requests are those of JAX's runtime: an array from the host is one request; an execution asks for each output and
   each temporary allocation, in the order of XLA's numbers, and frees the temporary ones; a donated argument's memory
   becomes that of the output, or is freed.
3. Small results that small known values determine are computed on the CPU (jax_values.py).
"""

import os
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager

from . import ending
from .trace_file import TraceFile

_session = None
_HERE = os.path.dirname(os.path.abspath(__file__))


class Session:
    """One recording. Events are kept and written at the end, when it is known which function is the step."""

    def __init__(self, path, card_name, card_bytes, capability, max_steps, progress):
        from .jax_arrays import Arrays
        from .jax_compile import Compiler

        self.trace = TraceFile(path)
        name = os.path.splitext(os.path.basename(sys.argv[0] or "program"))[0]
        self.trace.header.update(card=card_name, capacity=card_bytes)
        self.trace.header["name"] = name if name not in ("", "-c", "-m") else "program"
        self.card_name, self.card_bytes = card_name, card_bytes
        self.max_steps, self.progress = max_steps, progress
        self.compiler = Compiler(card_name, card_bytes, capability)
        if self.compiler.platform == "cpu":
            print(f"allocrig trace: {self.compiler.advice()}", file=sys.stderr)
        self.arrays = Arrays(self.free)
        self.events, self.freed = [], []
        self.live, self.peak, self.requests, self.largest = Counter(), Counter(), Counter(), Counter()
        self.next_number, self.in_flight = 0, False
        self.programs, self.reads, self.refusals = [], Counter(), []
        self.biggest, self.runs = None, Counter()
        self.pid, self.stopped = os.getpid(), False
        self.lock = threading.RLock()
        self.local = threading.local()
        self.user_code = {}
        self.started = time.monotonic()

    # state

    def real(self):
        """Whether JAX runs for the tracer itself, or in a forked child."""
        return getattr(self.local, "real", 0) or os.getpid() != self.pid

    @contextmanager
    def on_cpu(self):
        self.local.real = getattr(self.local, "real", 0) + 1
        try:
            yield
        finally:
            self.local.real -= 1

    def refuse(self, sentence):
        if sentence not in self.refusals:
            self.refusals.append(sentence)

    # events

    def event(self, line):
        if not self.stopped:  # after the end the program still gets stand-ins
            self.events.append(line)

    def user_line(self):
        """FILE:LINE of the innermost frame that is neither a package's nor Python's nor the tracer's."""
        frame = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code not in self.user_code:
                file = code.co_filename
                other = "site-packages" in file or "dist-packages" in file or file.startswith((_HERE, "<"))
                self.user_code[code] = not other and not file.startswith(os.path.dirname(os.__file__))
            if self.user_code[code]:
                return f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def request(self, size, device, tag, at, pinned=False, letter="a"):
        """A request, or with letter "p" a probe. Returns its number."""
        number = self.next_number
        self.next_number += 1
        line = f"{letter},{number},{size},tag={tag}"
        if device:
            line += f",device={device}"
        if pinned:
            line += ",space=pinned"
        if at:
            line += f",at={at}"
        self.event(line)
        if not pinned:
            self.count(device, size)
        return number

    def count(self, device, size):
        self.requests[device] += 1
        self.live[device] += -(-size // 256) * 256
        self.peak[device] = max(self.peak[device], self.live[device])
        self.largest[device] = max(self.largest[device], size)

    def free(self, buffer):
        """JAX has dropped a buffer. Its free is written with the next event: this may run in any thread."""
        if buffer.number is not None:
            self.freed.append(buffer)

    def flush(self):
        """Writes the frees that are due."""
        self.arrays.collect()
        while self.freed:
            buffer = self.freed.pop(0)
            if buffer.number is None:
                continue
            self.event(f"f,{buffer.number}")
            if not buffer.pinned:
                self.live[buffer.device] -= -(-buffer.size // 256) * 256
            buffer.number = None

    def compiled(self, program, devices):
        """A function was compiled: what XLA's autotuner asks for on the card that compiles."""
        from .jax_arrays import Buffer

        self.programs.append(program)
        device, at = min(d.id for d in devices), self.user_line()
        with self.lock:
            self.flush()
            for inputs, results in program.trials:
                sizes = inputs + results + results
                numbers = [self.request(n, device, f"{program.name}:autotune", at, letter="p") for n in sizes if n]
                self.freed.extend(Buffer(n, size, None, device) for n, size in zip(numbers, [s for s in sizes if s]))
                self.flush()

    def waited(self):
        """The program waited for the card."""
        if self.in_flight:
            self.in_flight = False
            self.event("s")

    def executed(self, program):
        """The end of an execution: a step, if this is the function with the most memory."""
        if self.stopped:
            return
        program.runs += 1
        self.event(program)
        self.runs[program.name] += 1
        if self.biggest is None or program.bytes > self.biggest.bytes:
            self.biggest = program
        steps = self.runs[program.name]
        if program.name != self.biggest.name or steps < 2:
            return
        if self.progress:
            seconds = time.monotonic() - self.started
            text = f"step {steps}, {self.live[0] >> 20} MiB live, peak {self.peak[0] >> 20} MiB, {seconds:.0f} s"
            end = "" if sys.stderr.isatty() else "\n"
            print(f"\rallocrig trace: {text}", end=end, file=sys.stderr, flush=True)
        if self.max_steps and steps >= self.max_steps:
            self.stop()
            raise SystemExit(0)

    # the end

    def steps_of(self):
        """The name of the function whose executions are steps: of those that ran twice or more, that with the most
        memory. A function that was compiled for several shapes is one function."""
        ran = [p for p in self.programs if p.runs and self.runs[p.name] > 1]
        return max(ran, key=lambda p: p.bytes).name if ran else None

    def stop(self, complete=True):
        """Ends the recording and writes the trace. A second call does nothing."""
        with self.lock:
            if self.stopped or os.getpid() != self.pid:
                return
            self.flush()
            self.stopped = True
            step = self.steps_of()
            for event in self.events:
                if isinstance(event, str):
                    self.trace.event(event)
                elif event.name == step:
                    self.trace.event("m", "step")
            self.write_notes(step)
            self.trace.close(complete)

    def write_notes(self, step):
        import jax
        import jaxlib

        note = self.trace.note
        versions = f"jax {jax.__version__}; jaxlib {jaxlib.__version__}"
        note("traced", "versions", f"{versions}; compiled for {self.compiler.platform}")
        if step is not None:
            note("traced", "step", step, self.runs[step])
        for name, count in sorted(self.reads.items()):
            note("traced", "drawn", name, count)
        calls, callbacks = {}, 0
        for program in self.programs:
            for name, (count, size) in program.unplanned.items():
                if "python" in name and "callback" in name:
                    callbacks += count * program.runs
                    continue
                entry = calls.setdefault(name, [0, 0])
                entry[0] += count * program.runs
                entry[1] += size * program.runs
        if callbacks:
            note("traced", "drawn", "host_callback", callbacks)
        for name, (count, size) in sorted(calls.items()):
            note("traced", "outside_table", name, count, size)
        tried = [sum(i) + 2 * sum(r) for p in self.programs for i, r in p.trials]
        if tried:
            note("traced", "rule", "jax_autotune", len(tried), max(tried))
        ran = [p for p in self.programs if p.temp]
        note("traced", "rule", "jax_temporary", sum(p.runs for p in ran), sum(p.temp for p in ran))
        constants = sum(p.constants for p in self.programs)
        if constants:
            note("traced", "rule", "jax_constants_in_code", sum(1 for p in self.programs if p.constants), constants)
        if self.compiler.platform == "cpu":
            note("traced", "unsure", "jax_compiled_for_cpu", len(self.programs), 0, sum(p.temp for p in self.programs))
        for sentence in self.refusals:
            note("traced", "outside_envelope", sentence)


def current():
    return _session


def start(path, card_name, card_bytes, sm=ending.CARD_SM, max_steps=0, progress=False):
    """Starts a recording to `path`. Call it right after `import jax`. Errors: RuntimeError if one runs already, or if
    this JAX has other insides than the tracer knows; OSError if the file cannot be written."""
    global _session
    import jax

    from . import jax_hooks

    if _session is not None and not _session.stopped:
        raise RuntimeError("a recording of allocrig runs already in this process: stop it first")
    jax_hooks.check()
    jax.config.update("jax_platforms", "cpu")
    _session = Session(path, card_name, card_bytes, sm, max_steps, progress)
    jax_hooks.install(_session)
    return _session


def start_from_environment():
    """Starts the recording that `allocrig trace` asks for and ends it with the program."""
    path = os.environ.get("ALLOCRIG_TRACE")
    if not path:
        print("allocrig trace: JAX is not traced, because this program imported torch first", file=sys.stderr)
        return
    ending.with_program(start(path, **ending.options()))
