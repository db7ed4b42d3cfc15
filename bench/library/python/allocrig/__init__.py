"""allocrig: GPU memory allocator policies over recorded or generated workloads.

    import allocrig
    rows = allocrig.run(["torch", "vmm"], "embedding", "sim:capacity=8GiB")
    allocrig.capacity("growth", "embedding")[0]["safe_bytes"]
    allocrig.advise("recording.csv.gz", capacity="4GiB")
    print(allocrig.fits(train, card="l4"))              # a function, without a GPU
    allocrig.twin("scenario.ini")["peak"]["bytes"]      # training and inference on the same cards

A workload with several GPUs has rows for each, as workload "PATH:device=N"; a device that is a number selects one.
Results are lists of dictionaries, one for each row: pandas.DataFrame(rows) takes them. allocrig.torch and
allocrig.cupy put a policy into PyTorch and CuPy. Errors of the library are allocrig.Error."""
import ctypes
import json
import math
import operator
import os

from . import _library, _traced
from ._library import Error

__all__ = ["Error", "Rows", "run", "capacity", "advise", "fits", "trace", "twin", "workload", "events", "metrics", "version", "Session"]

KINDS = ("end", "alloc", "probe", "free_requested", "free_completed", "use", "kernel", "record", "wait", "sync",
         "trim", "outside", "mark", "time", "note")
RUN_KINDS = ("alloc", "failed", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
             "segment_unmap", "call", "mark")
_loaded = []


def _lib():
    if not _loaded:
        _loaded.append(_library.Library())
    return _loaded[0]


class Rows(list):
    """A list of dictionaries; `document` is the JSON document that they are from, as `allocrig run --json` and
    `allocrig advise --json` write it."""

    document = None


def version():
    return _lib().ar_version().decode()


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def metrics():
    """All metrics: name, unit, definition, class (exact or timed), better (lower, higher or neither)."""
    found, metric = [], _library.Metric()
    while _lib().ar_metric_at(len(found), ctypes.byref(metric), ctypes.sizeof(metric)):
        found.append({"name": metric.name.decode(), "unit": metric.unit.decode(),
                      "definition": metric.definition.decode(), "class": ("exact", "timed")[metric.metric_class],
                      "better": ("lower", "higher", "neither")[metric.better]})
    return found


class _Handle:
    """An object of the library for a `with` block."""

    def __init__(self, opener, closer, *arguments):
        self.value, self.closer = _library.HANDLE(), closer
        opener(*arguments, ctypes.byref(self.value))

    def __enter__(self):
        return self.value

    def __exit__(self, *_):
        self.closer(self.value)


def workload(text):
    """What is known of a trace file or a generator's spec, as a dictionary."""
    lib, info = _lib(), _library.WorkloadInfo()
    with _Handle(lib.ar_workload_open, lib.ar_workload_close, _encoded(text)) as opened:
        lib.ar_workload_info(opened, ctypes.byref(info), ctypes.sizeof(info))
        return _library.row(info)


def events(text):
    """The events of a workload, one dictionary after the other."""
    lib, event = _lib(), _library.Event()
    with _Handle(lib.ar_workload_open, lib.ar_workload_close, _encoded(text)) as opened:
        while True:
            lib.ar_workload_next(opened, ctypes.byref(event), ctypes.sizeof(event))
            if not event.kind:
                return
            found = _library.row(event)
            found["kind"] = KINDS[event.kind] if event.kind < len(KINDS) else event.kind
            yield found


def _values(value):
    return value if isinstance(value, (list, tuple)) else [value]


def _text(value):
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _encoded(text):
    """For the library; a file name keeps bytes that are no UTF-8."""
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"{text!r} contains a NUL character")
    return encoded


def _experiment(lib, policies, workloads, devices, options):
    experiment = _Handle(lib.ar_experiment_open, lib.ar_experiment_close, lib.handle)
    pairs = [(key, value) for key, values in (("policy", policies), ("workload", workloads), ("device", devices))
             for value in _values(values)]
    pairs += [(key.replace("_", "-"), " ".join(_text(one) for one in _values(value)))
              for key, value in options.items() if value is not None]
    try:
        for key, value in pairs:
            lib.ar_experiment_set(experiment.value, _encoded(key), _encoded(_text(value)))
    except Exception:
        experiment.__exit__()
        raise
    return experiment


def _observer(observe, raised):
    def call(_argument, event, error):
        try:
            told = _library.row(event.contents)
            told["kind"] = RUN_KINDS[event.contents.kind]
            observe(told)
            return 0
        except BaseException as problem:  # it cannot pass through the library: it is raised when the run has ended
            raised.append(problem)
            error.contents.text = b"the observer raised an exception"
            return 4

    return _library.OBSERVER(call)


def _flat(entry):
    """The columns of results.csv, in its order. Figures that are not defined are NaN, so that every column of metrics is
    one of numbers."""
    policy, workload_, device, outcome = (entry[key] for key in ("policy", "workload", "device", "outcome"))
    found = {"policy": policy["name"], "policy_spec": policy["spec"], "workload": workload_["name"],
             "workload_spec": workload_["spec"], "sha256": workload_["sha256"], "complete": workload_["complete"],
             "device": device["kind"], "profile": device["profile"], "device_spec": device["spec"],
             "capacity_bytes": device["capacity_bytes"], "frees_mode": entry["frees"]}  # "frees" is a metric
    found.update((key, entry[key]) for key in ("host", "repetition", "seed"))
    found.update(passed=outcome["passed"], cause=outcome["cause"])
    found.update((name, math.nan if value is None else value) for name, value in entry["metrics"].items())
    return found


def run(policy, workload, device="sim", *, observe=None, **options):
    """Runs every policy over every workload on every device: each is a spec or a list of them. A row for each
    run, with the columns of results.csv; a figure that is not defined is NaN. `observe` is called with a dictionary at each event. Options are those of the
    program: frees, host, metrics, seed, replicates, capacities, on_fail, ..."""
    lib, raised = _lib(), []
    with _experiment(lib, policy, workload, device, options) as experiment:
        callback = _observer(observe, raised) if observe else None
        if callback:
            lib.ar_experiment_observe(experiment, callback, None)
        try:
            with _Handle(lib.ar_experiment_run, lib.ar_results_close, experiment) as results:
                document = json.loads(lib.text(lib.ar_results_json, results))
        except Error:
            if raised:
                raise raised[0] from None
            raise
    rows = Rows(_flat(entry) for entry in document["runs"])
    rows.document = document
    return rows


def capacity(policy, workload, device="sim", **options):
    """The smallest capacities at which each policy serves each workload: first_pass_bytes, safe_bytes, the same
    without a flush and without a retry, and the gaps between them. None: no capacity was found."""
    lib, rows, found = _lib(), [], _library.Capacity()
    with _experiment(lib, policy, workload, device, options) as experiment, \
            _Handle(lib.ar_experiment_capacity, lib.ar_capacities_close, experiment) as capacities:
        for index in range(lib.ar_capacities_count(capacities)):
            lib.ar_capacities_row(capacities, index, ctypes.byref(found), ctypes.sizeof(found))
            row = _library.row(found, skip=("gaps", "gap_count"))
            row["frees_mode"] = row.pop("frees")
            for name in ("first_pass_bytes", "safe_bytes", "no_flush_bytes", "no_retry_bytes"):
                row[name] = row[name] or None
            row["gaps"] = [(gap.from_bytes, gap.to_bytes) for gap in found.gaps[:found.gap_count]]
            rows.append(row)
    return rows


def _whole(name, number, bits):
    """`number`, which ctypes would cut to so many bits without a word."""
    if not 0 <= operator.index(number) < 2**bits:
        raise ValueError(f"{name} is {number}; write a whole number from 0 to {2**bits - 1}")
    return number


class Session:
    """A policy by hand, on a device of its own: for a program that decides itself which policy serves a request."""

    NO_MEMORY = 1

    def __init__(self, policy, device="sim", seed=1):
        self._lib, self._session, self._live = _lib(), _library.HANDLE(), {}
        self._lib.ar_session_open(self._lib.handle, _encoded(policy), _encoded(device),
                                  _whole("seed", seed, 64), ctypes.byref(self._session))

    def _opened(self):
        if not self._session:
            raise ValueError("the session is closed")
        return self._session

    def alloc(self, size, stream=0):
        """A block, with `address` and `granted_bytes`; None if there is no memory."""
        block = _library.Block()
        request = _library.Request(bytes=_whole("size", size, 64), stream=_whole("stream", stream, 16))
        try:
            self._lib.ar_session_alloc(self._opened(), ctypes.byref(request), ctypes.byref(block))
        except Error as error:
            if error.status != self.NO_MEMORY:
                raise
            return None
        self._live[id(block)] = block
        return block

    def free(self, block, stream=0):
        """`block`: what `alloc` returned. It is freed once."""
        if not isinstance(block, _library.Block):
            raise TypeError(f"free() takes the block that alloc() returned, not {block!r}")
        session = self._opened()
        if self._live.get(id(block)) is not block:
            raise ValueError("the block is freed already, or of another session")
        self._lib.ar_session_free(session, ctypes.byref(block), _whole("stream", stream, 16))
        del self._live[id(block)]

    def stats(self):
        """live_bytes, granted_bytes, reserved_bytes, largest_free_block_bytes, ..., as a dictionary."""
        found = _library.Stats()
        self._lib.ar_session_stats(self._opened(), ctypes.byref(found))
        return _library.row(found)

    def close(self):
        self._lib.ar_session_close(self._session)
        self._session = None


def advise(workload, capacity=None, device="sim", *, limit=None, **options):
    """Which settings would let a recorded program run in less memory: of each workload first the advice (`best`), if
    one fits, then by rank. `own`: a setting of the recorded framework; `given`: the recorded one. `capacity` is what the
    program may have (None: the recorded one, if it is known), `limit` the same as a limit that the program sets for itself."""
    lib, rows, found = _lib(), Rows(), _library.Setting()
    options = dict(options, capacity=capacity, limit=limit)
    with _experiment(lib, [], workload, device, options) as experiment, \
            _Handle(lib.ar_experiment_advise, lib.ar_advice_close, experiment) as advice:
        for index in range(lib.ar_advice_count(advice)):
            lib.ar_advice_row(advice, index, ctypes.byref(found), ctypes.sizeof(found))
            row = _library.row(found)
            row["fit"] = ("yes", "no", "unsure")[found.fit]
            row["safe_bytes"], row["slowdown"] = found.safe_bytes or None, found.slowdown or None
            row["needs_pytorch"] = f"{found.needs_major}.{found.needs_minor}" if found.needs_major else None
            del row["needs_major"], row["needs_minor"]
            rows.append(row)
        workloads = list(dict.fromkeys(row["workload"] for row in rows))
        rows.sort(key=lambda row: (workloads.index(row["workload"]), not row["best"]))
        rows.document = json.loads(lib.text(lib.ar_advice_json, advice))
    return rows


def trace(function, path, **options):
    """Calls a function without a GPU and writes the memory requests that it would make on one, as `allocrig trace`
    does. Options are those of the program: card, seed, steps, rank, world. Returns the path.

    The function is called without arguments in a new process (functools.partial binds them), so it must be importable
    by its name; a function of a notebook needs cloudpickle. What the caller has loaded or set does not matter there.
    For a function of the script itself the lines above the first call of `trace` or `fits` run again in that process."""
    return _traced.trace(function, path, **options)


def fits(function, **options):
    """Calls a function without a GPU, as `trace` does, and says how much memory it needs: a dictionary with the figures
    of `allocrig fits --json`, which prints as the page. Options are those of the program: card, vary, seeds, ..."""
    return _traced.fits(function, **options)


def twin(path, changes=None, **options):
    """Runs a scenario of training and inference on the cards of one machine (workloads/scenarios): a dictionary with
    the figures of `allocrig twin --json`, which prints as the page. `changes` replaces keys:
    {"rollout.gpu_memory_utilization": 0.5}. Options are those of the program: cycles, series, figure, journal, and
    what_if (False: no runs with changes)."""
    return _traced.twin(path, changes or {}, options)
