"""The plug-in liballocrig_torch.so in this process: bench/plugin/plugin.h through ctypes."""
import ctypes
import os

from ._library import find

U64 = ctypes.c_uint64
_loaded = []


class Range(ctypes.Structure):
    _fields_ = [("address", U64), ("bytes", U64), ("requested_bytes", U64), ("segment_address", U64),
                ("stream", ctypes.c_void_p), ("pool", ctypes.c_ulonglong * 2), ("state", ctypes.c_uint32)]


def path():
    """The plug-in: ALLOCRIG_PLUGIN, that of this package, of the build of this tree, or the installed one."""
    found = find("liballocrig_torch.so", "ALLOCRIG_PLUGIN")
    if not found:
        raise ImportError("liballocrig_torch.so is not found: run \"make plugin\" in the tree of allocrig where cuda.h "
                          "is, or name it in ALLOCRIG_PLUGIN")
    return found


def library():
    if not _loaded:
        lib = ctypes.CDLL(path())
        lib.allocrig_figure.restype = U64
        lib.allocrig_figure.argtypes = [ctypes.c_int, ctypes.c_char_p]
        lib.allocrig_reset_peaks.argtypes = [ctypes.c_int]
        lib.allocrig_mark.argtypes = [ctypes.c_char_p]
        lib.allocrig_statistics.restype = ctypes.c_size_t
        lib.allocrig_statistics.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
        lib.allocrig_ranges.restype = ctypes.c_size_t
        lib.allocrig_ranges.argtypes = [ctypes.c_int, ctypes.POINTER(Range), ctypes.c_size_t]
        lib.allocrig_cupy_malloc.restype = ctypes.c_void_p
        lib.allocrig_cupy_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        lib.allocrig_cupy_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        _loaded.append(lib)
    return _loaded[0]


def address(name):
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value


def settings(policy, stats, trace, verbose):
    """What the plug-in reads at its first call; None leaves the environment as it is."""
    for name, value in (("POLICY", policy), ("STATS", stats), ("TRACE", trace), ("VERBOSE", verbose)):
        if value is not None:
            os.environ["ALLOCRIG_" + name] = ("1" if value else "0") if isinstance(value, bool) else str(value)


def figure(name, device=0):
    """A figure of the plug-in's statistics, now ("peak_physical_bytes"); None before the first request."""
    value = library().allocrig_figure(device, name.encode())
    return None if value == 2**64 - 1 else value


def mark(label="step"):
    """A mark in the recording (`trace`); "step" ends a step."""
    library().allocrig_mark(label.encode())


def statistics(device):
    """{name: value} in the names of torch.cuda.memory_stats(); {} before the first request."""
    room = 16384
    while True:
        text = ctypes.create_string_buffer(room)
        needed = library().allocrig_statistics(device, text, room)
        if needed <= room:
            break
        room = needed
    return {name: int(value) for name, value in (line.split() for line in text.value.decode().splitlines())}


def ranges(device):
    """All ranges that the policy holds on the card."""
    room = 4096
    while True:
        found = (Range * room)()
        count = library().allocrig_ranges(device, found, room)
        if count <= room:
            return found[:count]
        room = count + 1024
