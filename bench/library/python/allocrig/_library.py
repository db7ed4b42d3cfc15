"""liballocrig through ctypes: finds it and declares what the package calls of it."""
import ctypes
import ctypes.util
import os

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.normpath(os.path.join(HERE, "..", "..", "..", ".."))

U64, U32, SIZE, TEXT, HANDLE = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p


class Error(Exception):
    """What the library refused, and why. `status` is the number of enum ar_status."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def find(name, variable):
    """The path of a library: what the environment says, what is in this package, in the build of the tree that
    this file is in, beside the Python that runs, or what the system knows; None."""
    places = [os.environ.get(variable), os.path.join(HERE, "lib", name),
              os.path.join(TREE, ".build", "release", name)]
    prefixes = [os.path.normpath(os.path.join(HERE, *[".."] * up)) for up in range(1, 5)]
    places += [os.path.join(prefix, "lib", name) for prefix in prefixes + ["/usr/local", "/usr"]]
    for place in places:
        if place and os.path.exists(place):
            return os.path.realpath(place)
    return None


class ErrorText(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 1024)]


class Metric(ctypes.Structure):
    _fields_ = [("name", TEXT), ("unit", TEXT), ("definition", TEXT), ("metric_class", ctypes.c_int),
                ("better", ctypes.c_int)]


class WorkloadInfo(ctypes.Structure):
    _fields_ = [(name, TEXT) for name in ("name", "format", "recorder", "settings", "card")] + [
        (name, U64) for name in ("events", "requests", "frees", "steps", "kernels", "streams", "peak_live_bytes",
                                 "requested_bytes", "capacity_bytes", "limit_bytes")] + [("complete", ctypes.c_bool)]


class Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("stream", U32), ("number", U64), ("id", U64), ("value", U64),
                ("text", TEXT), ("tag", TEXT), ("pool", U32)]


class RunEvent(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("stream", U32), ("pool", U32), ("row", U32)] + [
        (name, U64) for name in ("event", "now_ns", "address", "bytes", "free_bytes")] + [
        ("tag", TEXT), ("text", TEXT)] + [
        (name, U64) for name in ("live_bytes", "granted_bytes", "reserved_bytes", "physical_bytes")]


class Gap(ctypes.Structure):
    _fields_ = [("from_bytes", U64), ("to_bytes", U64)]


class Capacity(ctypes.Structure):
    _fields_ = [(name, TEXT) for name in ("policy", "workload", "device", "frees")] + [
        (name, U64) for name in ("seed", "live_peak_bytes", "first_pass_bytes", "safe_bytes", "no_flush_bytes",
                                 "no_retry_bytes", "runs")] + [
        ("gaps", ctypes.POINTER(Gap)), ("gap_count", U64), ("why", TEXT)]


class Setting(ctypes.Structure):
    _fields_ = [("policy", TEXT), ("setting", TEXT), ("cost", TEXT), ("own", ctypes.c_bool),
                ("given", ctypes.c_bool), ("best", ctypes.c_bool), ("fit", ctypes.c_int), ("safe_bytes", U64),
                ("slowdown", ctypes.c_double), ("peak_reserved_bytes", U64), ("peak_physical_bytes", U64),
                ("workload", TEXT), ("rank", U64), ("needs_major", ctypes.c_uint), ("needs_minor", ctypes.c_uint)]


class Request(ctypes.Structure):
    _fields_ = [("bytes", U64), ("alignment", U64), ("stream", U32), ("pool", U32), ("upper_end", ctypes.c_uint8),
                ("may_fail", ctypes.c_uint8), ("mempool", ctypes.c_uint8)]


class Block(ctypes.Structure):
    _fields_ = [(name, U64) for name in ("address", "granted_bytes", "requested_bytes", "cookie")]

    def __repr__(self):
        return f"<Block at {self.address:#x}, {self.granted_bytes} bytes>"


class Stats(ctypes.Structure):
    _fields_ = [(name, U64) for name in (
        "live_bytes", "granted_bytes", "reserved_bytes", "pending_bytes", "releasable_bytes", "live_blocks",
        "overhead_bytes", "largest_free_block_bytes", "stranded_by_stream_bytes", "splits", "merges", "segments_made",
        "segments_freed", "flushes", "retries", "failures", "remapped_bytes")]


OBSERVER = ctypes.CFUNCTYPE(ctypes.c_int, HANDLE, ctypes.POINTER(RunEvent), ctypes.POINTER(ErrorText))

OUT, ERROR = ctypes.POINTER(HANDLE), ctypes.POINTER(ErrorText)
TEXT_OUT = ctypes.POINTER(HANDLE)
FUNCTIONS = {  # name: (result, arguments); int is enum ar_status
    "ar_version": (TEXT, []),
    "ar_free": (None, [HANDLE]),
    "ar_library_open": (int, [OUT, ERROR]),
    "ar_library_close": (None, [HANDLE]),
    "ar_workload_open": (int, [TEXT, OUT, ERROR]),
    "ar_workload_close": (None, [HANDLE]),
    "ar_workload_info": (int, [HANDLE, ctypes.POINTER(WorkloadInfo), SIZE, ERROR]),
    "ar_workload_next": (int, [HANDLE, ctypes.POINTER(Event), SIZE, ERROR]),
    "ar_metric_at": (ctypes.c_bool, [SIZE, ctypes.POINTER(Metric), SIZE]),
    "ar_experiment_open": (int, [HANDLE, OUT, ERROR]),
    "ar_experiment_close": (None, [HANDLE]),
    "ar_experiment_set": (int, [HANDLE, TEXT, TEXT, ERROR]),
    "ar_experiment_observe": (None, [HANDLE, OBSERVER, HANDLE]),
    "ar_experiment_run": (int, [HANDLE, OUT, ERROR]),
    "ar_results_close": (None, [HANDLE]),
    "ar_results_json": (int, [HANDLE, TEXT_OUT, ERROR]),
    "ar_experiment_capacity": (int, [HANDLE, OUT, ERROR]),
    "ar_capacities_close": (None, [HANDLE]),
    "ar_capacities_count": (SIZE, [HANDLE]),
    "ar_capacities_row": (int, [HANDLE, SIZE, ctypes.POINTER(Capacity), SIZE, ERROR]),
    "ar_experiment_advise": (int, [HANDLE, OUT, ERROR]),
    "ar_advice_close": (None, [HANDLE]),
    "ar_advice_count": (SIZE, [HANDLE]),
    "ar_advice_row": (int, [HANDLE, SIZE, ctypes.POINTER(Setting), SIZE, ERROR]),
    "ar_advice_json": (int, [HANDLE, TEXT_OUT, ERROR]),
    "ar_session_open": (int, [HANDLE, TEXT, TEXT, U64, OUT, ERROR]),
    "ar_session_close": (None, [HANDLE]),
    "ar_session_alloc": (int, [HANDLE, ctypes.POINTER(Request), ctypes.POINTER(Block), ERROR]),
    "ar_session_free": (int, [HANDLE, ctypes.POINTER(Block), U32, ERROR]),
    "ar_session_stats": (None, [HANDLE, ctypes.POINTER(Stats)]),
}


class Library:
    """The functions of liballocrig by name; those that return a status raise Error."""

    def __init__(self):
        path = find("liballocrig.so.0", "ALLOCRIG_LIBRARY") or ctypes.util.find_library("allocrig")
        if not path:
            raise ImportError("liballocrig.so.0 is not found: run \"make library\" in the tree of allocrig, "
                              "\"make install\", or name it in ALLOCRIG_LIBRARY")
        self.path = path
        self._dll = ctypes.CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self._dll, name)
            function.argtypes = arguments
            function.restype = ctypes.c_int if result is int else result
            setattr(self, name, self._checked(function) if result is int else function)
        handle = HANDLE()
        self.ar_library_open(ctypes.byref(handle))
        self.handle = handle

    @staticmethod
    def _checked(function):
        def call(*arguments):
            error = ErrorText()
            status = function(*arguments, ctypes.byref(error))
            if status:
                raise Error(status, error.text.decode("utf-8", "replace"))

        return call

    def text(self, function, *arguments):
        """A text that is the caller's, as a str."""
        out = HANDLE()
        function(*arguments, ctypes.byref(out))
        try:
            return ctypes.cast(out, TEXT).value.decode()
        finally:
            self.ar_free(out)


def row(structure, skip=()):
    """The fields of a struct as a dict."""
    found = {}
    for name, _ in structure._fields_:
        if name not in skip:
            value = getattr(structure, name)
            found[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found
