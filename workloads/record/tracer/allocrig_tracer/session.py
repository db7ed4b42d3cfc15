"""Starts and stops a recording, and holds what belongs to the whole program: streams, steps, modules, draws."""

import os
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import torch

from . import compile as compiler
from . import allocator, autocast, branches, card, checkpoints, children, distributed, ending, graphs, host_random, moves, order, parameters, release
from .fake import CardMode, patch_fake_tensor
from .ledger import Ledger
from .trace_file import TraceFile

PROGRESS_S = 2  # seconds between two lines of progress
_current = None


def current():
    """The running session, or None."""
    return _current


class Session:
    """One recording. `start` makes it."""

    def __init__(self, path, card_name, card_bytes, sm, seed, max_steps, progress):
        self.card = SimpleNamespace(name=card_name, bytes=card_bytes, sm=sm, sms=card.multiprocessors(card_name, sm))
        self.trace = TraceFile(path)
        self.trace.header.update({"card": card_name, "capacity": card_bytes, "let-go": "final"})
        name = os.path.splitext(os.path.basename(sys.argv[0] or "program"))[0]
        self.trace.header["name"] = name if name not in ("", "-c", "-m") else "program"
        self.ledger = Ledger(self.trace)
        self.ledger.card_bytes, self.ledger.conf = card_bytes, allocator.conf_at_import()
        self.pid = os.getpid()
        self.seed, self.max_steps, self.progress = seed, max_steps, progress
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)
        self.random_state = self.generator.get_state()
        self.draws, self.reads = Counter(), Counter()
        self.attention = Counter()
        self.doubts = {}
        self.refusals = []
        self.local = threading.local()
        self.backward_depth = 0
        self.backward_thread = order.BackwardThread()
        self.kernel_times = os.environ.get("ALLOCRIG_TRACE_KERNELS") != "none"
        self.host_ns = 0  # time of the host by the model of kernel_times.py
        self.stream_of_backward = 0  # the current stream when backward began
        self.in_step_of, self.has_optimizer = None, False
        self.devices = int(os.environ.get("ALLOCRIG_TRACE_DEVICES") or 1)
        self.ledger.devices = max(self.devices, distributed.rank_and_world()[1] or 1)  # a rank may use the card of its number
        self.emptied = {}  # storages of fake CUDA tensors that were resized to 0 -> device
        self.started = self.shown = time.monotonic()
        self.mode = CardMode(self)
        self.stopped, self.replaced_by = False, None

    def active(self):
        """False while the tracer computes with real tensors, in forked children, and after the end."""
        return not (self.stopped or getattr(self.local, "pauses", 0) or os.getpid() != self.pid)

    @contextmanager
    def paused(self):
        """Operators in this context are the tracer's own and run on real tensors."""
        self.local.pauses = getattr(self.local, "pauses", 0) + 1
        try:
            with torch._C.DisableTorchFunction():
                yield
        finally:
            self.local.pauses -= 1

    @contextmanager
    def random_numbers(self):
        """Random operators in this context draw from the tracer's seed, not from the program's own CPU generator."""
        own = torch.default_generator.get_state()
        torch.default_generator.set_state(self.random_state)
        try:
            yield
        finally:
            self.random_state = torch.default_generator.get_state()
            torch.default_generator.set_state(own)

    # devices and streams

    def current_device(self):
        return torch.device("cuda", getattr(self.local, "device", 0))

    def stream_now(self, device=None):
        """Number of the current stream of a device; 0 is its default stream."""
        device = self.current_device().index if device is None else device
        return getattr(self.local, "streams", {}).get(device, 0)

    def set_stream(self, device, number):
        if not hasattr(self.local, "streams"):
            self.local.streams = {}
        self.local.streams[device] = number

    def in_backward(self):
        return self.backward_depth > 0

    def module_now(self):
        stack = getattr(self.local, "modules", None)
        return stack[-1] if stack else ""

    def meta_wanted(self, tensors):
        """Whether the program itself asked for device meta: C++ code asks for it in place of cuda."""
        if tensors:
            return not any(isinstance(t, torch._subclasses.FakeTensor) and t.fake_device.type != "meta" for t in tensors)
        if getattr(self.local, "meta", 0):
            return True
        default = card.default_device()
        return default is not None and default.type == "meta"

    # what is counted

    def drawn(self, name):
        self.draws[name] += 1

    def read(self, name):
        """The program reads unknown numbers, such as a loss that it prints: no size is likely to depend on them."""
        self.reads[name] += 1

    def unsure(self, name, low, high):
        """A kernel takes between low and high bytes of its own."""
        entry = self.doubts.setdefault(name, [0, 0, 0])
        entry[0] += 1
        entry[1] = max(entry[1], low)
        entry[2] = max(entry[2], high)

    def refuse(self, sentence):
        """The trace is not what a card would be asked: `fits` gives this sentence instead of an answer."""
        if sentence not in self.refusals:
            self.refusals.append(sentence)

    def storage_resized(self, storage, device):
        """A storage has another size than its request had: the allocator gets a new request and a free."""
        ledger = self.ledger
        block = ledger.storages.get(storage._cdata)
        size = storage.nbytes()
        if block is not None and block.size == size:
            return
        tag = self.module_now()
        new = ledger.request(size, device=device, stream=self.stream_now(device), tag=f"{tag}:resize" if tag else "resize")
        if block is not None:
            ledger.destroyed(storage._cdata)
        ledger.adopt(storage, new)

    def wait_for_stream(self, tensor):
        """The host waits for the current stream: a value of the card is read."""
        if tensor.fake_device.type == "cuda" and not self.ledger.closed:
            index = tensor.fake_device.index
            self.trace.event("s", self.ledger.ordinal(index, self.stream_now(index)))

    def synchronized(self):
        """The program waited for the card: this ends a step of a program that has no optimizer."""
        if not self.has_optimizer and self.ledger.next_number:
            self.step()

    def step(self):
        """Ends a step. After the number of steps that the user asked for, the program ends."""
        self.ledger.step()
        now = time.monotonic()
        if self.progress and now - self.shown >= PROGRESS_S:
            self.shown = now
            live, peak = self.ledger.live[0] / (1 << 20), self.ledger.peak[0] / (1 << 20)
            text = f"step {self.ledger.steps}, {live:.0f} MiB live, peak {peak:.0f} MiB, {now - self.started:.0f} s"
            print(f"allocrig trace: {text}", file=sys.stderr, flush=True)
        if self.max_steps and self.ledger.steps >= self.max_steps:
            self.stop()
            raise SystemExit(0)

    def stop(self, complete=True):
        """Ends the recording and writes the trace. A second call does nothing."""
        if self.stopped or os.getpid() != self.pid:
            return
        self.stopped = True
        self.ledger.close()
        if children.drop_empty(self):
            return
        children.gather(self, distributed.rank_and_world()[0])
        self.write_notes()
        if self.ledger.conf:
            self.trace.header["conf"] = self.ledger.conf
        self.trace.close(complete)
        if self.replaced_by:
            os.replace(self.replaced_by, self.trace.path)

    def write_notes(self):
        note = self.trace.note
        note("traced", "versions", f"torch {torch.__version__}")
        if release.release() != release.MEASURED:
            note("traced", "measured", f"torch {release.text(release.MEASURED)}")
        note("traced", "seed", self.seed)
        for name, count in sorted(self.draws.items()):
            note("traced", "drawn", name, count)
        for name, count in sorted(self.reads.items()):
            note("traced", "read", name, count)
        for name, (count, size) in sorted(self.mode.outside.items()):
            note("traced", "outside_table", name, count, size)
        for name, (count, low, high) in sorted(self.doubts.items()):
            note("traced", "unsure", name, count, low, high)
        for name, (count, size) in sorted(self.ledger.rules.items()):
            note("traced", "rule", name, count, size)
        if self.ledger.raised:
            note("traced", "raised", "out of memory", self.ledger.raised)
        for sentence in self.refusals:
            note("traced", "outside_envelope", sentence)


def start(
    path, card_name=ending.CARD_NAME, card_bytes=ending.CARD_BYTES, sm=ending.CARD_SM, seed=1, max_steps=0, progress=False
):
    """Starts a recording to `path`: from here on CUDA tensors of the program have no data and need no card.

    Call it right after `import torch`, before other modules take functions out of torch. Returns the Session; end it
    with `stop`. Errors: RuntimeError if a session runs already or this release of PyTorch is too old, OSError if the file
    cannot be written.
    """
    global _current
    if release.too_old():
        raise RuntimeError(release.too_old())
    if _current is not None:
        raise RuntimeError("a recording of allocrig runs already in this process: stop it first")
    session = Session(path, card_name, card_bytes, sm, seed, max_steps, progress)
    if not getattr(torch, "_allocrig_patched", False):
        patch_fake_tensor()
        host_random.install(current)
        torch._allocrig_patched = True
    _current = session
    compiler.keep_rules()
    card.install(current)
    parameters.install(current)
    branches.install(current)
    graphs.install(current)
    compiler.install(current)
    autocast.install()
    moves.install(current)
    checkpoints.install(current)
    distributed.install(current)
    _hook_threads()
    session.mode.__enter__()
    session.mode.learn_references()
    session.backward_thread = order.BackwardThread()
    return session


def stop(complete=True):
    """Ends the running recording and writes its trace. Returns the path, or None if no recording runs."""
    global _current
    session, _current = _current, None
    if session is None:
        return None
    try:
        session.stop(complete)
    finally:
        session.mode.__exit__(None, None, None)
    return session.trace.path


def start_from_environment():
    """Starts the recording that `allocrig trace` asks for and ends it with the program."""
    seed = int(os.environ.get("ALLOCRIG_TRACE_SEED") or 1)
    path = os.environ["ALLOCRIG_TRACE"]
    again = os.path.exists(path)
    session = start(path, seed=seed, **ending.options())
    if again:
        session.refuse("the command ran several programs of PyTorch, and the trace is of the last one: trace each by itself")
    ending.with_program(session)
    children.follow_forks(session, TraceFile)


def _hook_threads():
    """New threads of the program run under the mode as well: modes of PyTorch belong to one thread."""
    if getattr(threading.Thread, "_allocrig", False):
        return
    threading.Thread._allocrig = True
    run = threading.Thread._bootstrap_inner

    def bootstrap(self):
        session = current()
        if session is None or os.getpid() != session.pid:
            return run(self)
        with session.mode:
            return run(self)

    threading.Thread._bootstrap_inner = bootstrap
