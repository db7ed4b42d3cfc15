"""A policy of allocrig inside PyTorch or CuPy: what README.md shows, as a module.

    import allocrig_torch
    allocrig_torch.install()            # before anything is put on a GPU; ALLOCRIG_POLICY says which policy
    ...
    print(allocrig_torch.figure("peak_physical_bytes"))
"""
import ctypes
import os

# What PyTorch's pluggable allocator may be told of, beside malloc and free.
HOOKS = {
    "set_record_stream_fn": "allocrig_record_stream",
    "set_reset_fn": "allocrig_empty_cache",
    "set_memory_fraction_fn": "allocrig_memory_fraction",
    "set_base_alloc_fn": "allocrig_base_alloc",
    "set_begin_allocate_to_pool": "allocrig_begin_pool",
    "set_end_allocate_to_pool_fn": "allocrig_end_pool",
    "set_release_pool": "allocrig_release_pool",
}


def path():
    """The library: ALLOCRIG_PLUGIN, else the installed one, or that of the release build of this tree."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(here, "..", "liballocrig_torch.so")
    built = os.path.join(here, "..", "..", ".build", "release", "liballocrig_torch.so")
    found = os.environ.get("ALLOCRIG_PLUGIN") or (installed if os.path.exists(installed) else built)
    return os.path.abspath(found)


def library():
    lib = ctypes.CDLL(path())
    lib.allocrig_figure.restype = ctypes.c_uint64
    lib.allocrig_figure.argtypes = [ctypes.c_int, ctypes.c_char_p]
    lib.allocrig_reset_peaks.argtypes = [ctypes.c_int]
    lib.allocrig_mark.argtypes = [ctypes.c_char_p]
    lib.allocrig_cupy_malloc.restype = ctypes.c_void_p
    lib.allocrig_cupy_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    lib.allocrig_cupy_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return lib


def address(lib, name):
    return ctypes.cast(getattr(lib, name), ctypes.c_void_p).value


def install():
    """Makes PyTorch take all of its device memory from the policy."""
    import torch

    lib = library()
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path(), "allocrig_malloc", "allocrig_free")
    for setter, name in HOOKS.items():
        if hasattr(allocator.allocator(), setter):
            getattr(allocator.allocator(), setter)(address(lib, name))
    torch.cuda.memory.change_current_allocator(allocator)
    return allocator


def install_cupy(stream=0):
    """Makes CuPy take device memory from the policy, for work on `stream` (a pointer; 0: the default
    stream)."""
    import cupy

    lib = library()
    allocator = cupy.cuda.CFunctionAllocator(
        stream, address(lib, "allocrig_cupy_malloc"), address(lib, "allocrig_cupy_free"), lib)
    cupy.cuda.set_allocator(allocator.malloc)
    return allocator


def figure(name, device=0):
    """A figure of the statistics, now; None before the first request."""
    value = library().allocrig_figure(device, name.encode())
    return None if value == 2**64 - 1 else value


def mark(label="step"):
    """A mark in the recording (ALLOCRIG_TRACE); "step" ends a step."""
    library().allocrig_mark(label.encode())
