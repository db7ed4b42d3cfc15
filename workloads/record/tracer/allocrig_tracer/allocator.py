"""PyTorch's allocator beside the recording: what it has reserved, and whether a request fails below the limit.

The requests of the program go to the policy `torch` of liballocrig, with the program's own settings, to `async` under
`backend:cudaMallocAsync`, and to `direct` under PYTORCH_NO_CUDA_MEMORY_CACHING. Without the library, or in a build that
does not load here, the live bytes stand for the reserved ones.
"""

import ast
import ctypes
import functools
import os
import sys

import torch

from . import release

CONTEXT = 512 << 20  # bytes of a card that the context and libraries take
UNLIMITED = 1 << 44


class Request(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("alignment", ctypes.c_uint64), ("stream", ctypes.c_uint32),
                ("pool", ctypes.c_uint32), ("upper_end", ctypes.c_uint8), ("may_fail", ctypes.c_uint8),
                ("mempool", ctypes.c_uint8)]  # fmt: skip


class Given(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("address", "granted_bytes", "requested_bytes", "cookie")]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "live", "granted", "reserved", "pending", "releasable", "live_blocks", "overhead", "largest_free", "stranded",
        "splits", "merges", "segments_made", "segments_freed", "flushes", "retries", "failures", "remapped")]  # fmt: skip


class ErrorText(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 1024)]


def find():
    """The path of the library: in the tree, beside an installed tracer, or in the Python package; None."""
    up = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("ALLOCRIG_LIBRARY")]
    for _ in range(7):
        up = os.path.dirname(up)
        places += [f"{up}/{folder}/liballocrig.so{end}" for folder in ("lib", ".build/release") for end in (".0", "")]
    return next((p for p in places if p and os.path.exists(p)), None)


@functools.cache
def library():
    """(the library, a handle of ar_library), or None."""
    path = find()
    try:
        lib = ctypes.CDLL(path) if path else None
        if lib is None:
            return None
        for name in ("ar_session_policy", "ar_library_open"):
            getattr(lib, name).restype = ctypes.c_void_p if name == "ar_session_policy" else ctypes.c_int
        handle = ctypes.c_void_p()
        failed = lib.ar_library_open(ctypes.byref(handle), ctypes.byref(ErrorText()))
    except (OSError, AttributeError):
        return None
    return None if failed else (lib, handle)


POOL, UNCACHED = "backend:cudaMallocAsync", "PYTORCH_NO_CUDA_MEMORY_CACHING"


def conf_at_import():
    """The settings in the environment. The pool of the driver does not read the variable that turns the cache off."""
    conf = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    return conf if POOL in conf or UNCACHED not in os.environ else f"{UNCACHED}=1"


def conf_at_first_request(imported):
    """PyTorch reads its settings at the first request, except which allocator it is (BackendStaticInitializer in
    c10/cuda/CUDACachingAllocator.cpp)."""
    conf = conf_at_import()
    if POOL in conf and POOL not in imported:
        raise RuntimeError(f"Allocator backend parsed at runtime != allocator backend parsed at load time: the settings {conf} "
                           "have to be in the environment before torch is imported")  # fmt: skip
    return imported if POOL in imported else conf


def policy_of(conf):
    """The policy that does what PyTorch does with these settings."""
    if POOL in conf:
        return "async:release_threshold=max"
    return "direct" if conf.startswith(UNCACHED) else "torch" + (f":conf='{conf}'" if conf else "")


@functools.cache
def refuse_conf(conf):
    """Raises an error for settings that this release of PyTorch refuses, as it does at the first request."""
    if not conf or not policy_of(conf).startswith("torch"):
        return
    lib, handle = library()
    opened, error = ctypes.c_void_p(), ErrorText()
    spec = f"torch:version={release.text(release.release())},conf='{conf}'"
    if lib.ar_session_open(handle, spec.encode(), b"sim", ctypes.c_uint64(1), ctypes.byref(opened), ctypes.byref(error)):
        why = error.text.decode(errors="replace").removeprefix("policy torch: ")
        raise RuntimeError(f"PyTorch refuses the settings {conf} of its allocator: {why}")
    lib.ar_session_close(opened)


class Allocator:
    """The allocator of one card. Its requests are kept, to play them again when the limit changes."""

    def __init__(self, conf, limit):
        self.conf, self.limit = conf, limit
        self.log, self.next, self.opened, self.blocks = [], 0, None, {}
        self.reserved = self.peak = self.live = 0
        self.sizes = {}
        self.open()

    def open(self):
        found = library()
        self.close()
        if found is None:
            return
        self.lib, handle = found
        refuse_conf(self.conf)
        spec = policy_of(self.conf)
        opened = ctypes.c_void_p()
        if self.lib.ar_session_open(handle, spec.encode(), f"sim:capacity={self.limit}".encode(), ctypes.c_uint64(1),
                                    ctypes.byref(opened), ctypes.byref(ErrorText())):  # fmt: skip
            return
        self.opened, self.stats, self.request = opened, Stats(), Request()
        self.policy = ctypes.c_void_p(self.lib.ar_session_policy(opened))

    def close(self):
        if self.opened is not None:
            self.lib.ar_session_close(self.opened)
        self.opened, self.blocks = None, {}

    def __del__(self):
        self.close()

    def set_limit(self, limit):
        """From here on the allocator has `limit` bytes; what it holds stays."""
        if limit == self.limit:
            return
        self.limit = limit
        self.open()
        self.reserved = 0
        for entry in self.log if self.opened is not None else ():
            if entry[0] == "a":
                self.give(*entry[1:])
            elif entry[0] == "r":
                self.back(entry[1])
            elif entry[0] == "s":
                self.change(entry[1])
            else:
                self.trim(*entry[1:])

    def give(self, number, size, stream, pool):
        """Serves a request; False if there is no memory for it."""
        request, block = self.request, Given()
        request.bytes, request.stream, request.pool = size, stream, pool
        request.mempool = 1 if pool else 0
        if self.lib.ar_session_alloc(self.opened, ctypes.byref(request), ctypes.byref(block), ctypes.byref(ErrorText())):
            self.count()
            return False
        self.blocks[number] = block, stream
        self.count()
        return True

    def back(self, number):
        block = self.blocks.pop(number, None)
        if block is not None:
            self.lib.ar_session_free(self.opened, ctypes.byref(block[0]), ctypes.c_uint32(block[1]), ctypes.byref(ErrorText()))
            self.count()

    def trim(self, pool, deleted):
        """Releases what is cached. A pool that has ended releases its memory next time, one that was deleted now."""
        if pool:
            end = self.lib.ar_policy_delete_pool if deleted else self.lib.ar_policy_end_pool
            end(self.policy, ctypes.c_uint32(pool))
        else:
            self.lib.ar_policy_trim(self.policy, ctypes.c_uint64(0))
        self.count()

    def change(self, conf):
        """The program sets its settings again."""
        self.lib.ar_policy_change(self.policy, f"settings,{conf}".encode(), ctypes.byref(ErrorText()))

    def count(self):
        self.lib.ar_session_stats(self.opened, ctypes.byref(self.stats))
        self.reserved = self.stats.reserved
        self.peak = max(self.peak, self.reserved)

    def take(self, size, stream, pool):
        """The number of a request that is served, or None if there is no memory for it."""
        number = self.next
        self.next += 1
        if self.opened is not None:
            if not self.give(number, size, stream, pool):
                return None
        elif self.live + size > self.limit:
            return None
        else:
            self.reserved = max(self.reserved, self.live + size)
            self.peak = max(self.peak, self.reserved)
        self.live += size
        self.sizes[number] = size
        self.log.append(("a", number, size, stream, pool))
        return number

    def drop(self, number):
        if number is None or number not in self.sizes:
            return
        self.live -= self.sizes.pop(number)
        self.log.append(("r", number))
        if self.opened is not None:
            self.back(number)

    def empty_cache(self, pool=0, deleted=False):
        self.log.append(("c", pool, deleted))
        if self.opened is not None:
            self.trim(pool, deleted)
        elif not pool:
            self.reserved = self.live

    def set_conf(self, conf):
        self.log.append(("s", conf))
        if self.opened is not None:
            self.change(conf)

    uncached = property(lambda self: self.conf.startswith(UNCACHED))  # PyTorch then counts nothing
    retries = property(lambda self: self.stats.retries if self.opened is not None else 0)


NAMES = ("outofmemory", "memory", "oom", "batch_size")
GENERAL = ("RuntimeError", "Exception", "MemoryError")


@functools.cache
def handlers(path, surely):
    """[(first line, last line)] of the code of a file that is inside a `try` or `with` which expects a lack of memory, or,
    for a request that no card of this size serves (`surely`), after which the program goes on."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            if any(expects(text, handler) or surely and goes_on(text, handler) for handler in node.handlers):
                found.append((node.body[0].lineno, node.body[-1].end_lineno))
        elif isinstance(node, ast.With):
            items = " ".join(ast.get_source_segment(text, item.context_expr) or "" for item in node.items)
            names = ("OutOfMemoryError", *GENERAL) if surely else ("OutOfMemoryError",)
            if any(name in items for name in names) and ("suppress" in items or "raises" in items):
                found.append((node.body[0].lineno, node.body[-1].end_lineno))
    return found


def expects(text, handler):
    """Whether a handler is for a lack of memory: it names that error, or a general one and speaks of memory."""
    kind = ast.get_source_segment(text, handler.type) if handler.type is not None else ""
    if "OutOfMemoryError" in kind:
        return True
    if kind and not any(name in kind for name in GENERAL):
        return False
    body = "\n".join(ast.get_source_segment(text, statement) or "" for statement in handler.body).lower()
    return any(name in body for name in NAMES)


def goes_on(text, handler):
    """Whether a handler of general errors neither raises one nor ends the program, whatever the error is."""
    kind = ast.get_source_segment(text, handler.type) if handler.type is not None else ""
    body = [ast.get_source_segment(text, statement) or "" for statement in handler.body]
    ends = any(isinstance(s, ast.Raise) for s in handler.body) or any("exit(" in line for line in body)
    return not ends and (not kind or any(name in kind for name in GENERAL))


TORCH, PYTHON = (os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (torch, os))


def passes_on(path):
    """Whether a handler in this file takes the program's errors elsewhere, as those of threads and futures do."""
    return path.startswith((TORCH, "<")) or path.startswith(PYTHON) and "-packages" not in path


def is_caught(surely):
    """Whether the program expects the request that it makes now to fail because there is no memory. surely: it does so
    on a card, which is smaller than the request."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not passes_on(path) and any(a <= frame.f_lineno <= b for a, b in handlers(path, surely)):
            return True
        frame = frame.f_back
    return False


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"


def error(device, size, total, allocator):
    """PyTorch's own error."""
    return torch.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {size_text(size)}. GPU {device} has a total capacity of "
        f"{size_text(total)} of which {size_text(max(allocator.limit - allocator.reserved, 0))} is free. Of the allocated "
        f"memory {size_text(allocator.live)} is allocated by PyTorch, and "
        f"{size_text(max(allocator.reserved - allocator.live, 0))} is reserved by PyTorch but unallocated."
    )
