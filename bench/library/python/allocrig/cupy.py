"""A policy of allocrig inside CuPy:

    import allocrig.cupy
    allocrig.cupy.use("vmm")"""
from . import _plugin
from ._plugin import figure, mark

__all__ = ["use", "figure", "mark"]


def use(policy=None, *, stream=0, stats=None, trace=None, verbose=None):
    """Makes CuPy take device memory from `policy` (see allocrig.torch.use), for work on `stream`: 0, the default
    stream, or the `ptr` of one, since CuPy does not say for which stream a block is. Returns the allocator, for
    cupy.cuda.using_allocator with further streams."""
    import cupy

    _plugin.settings(policy, stats, trace, verbose)
    allocator = cupy.cuda.CFunctionAllocator(stream, _plugin.address("allocrig_cupy_malloc"),
                                             _plugin.address("allocrig_cupy_free"), _plugin.library())
    cupy.cuda.set_allocator(allocator.malloc)
    return allocator
