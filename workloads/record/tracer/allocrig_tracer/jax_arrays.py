"""Arrays that stand for arrays on the card.

They are ordinary arrays of JAX's CPU client, so that every part of JAX works with them. Their memory is a part of one
mapping that is never written: a large array takes no memory of the host and reads as zeros. A small array whose values
are known has them. The card's memory of an array is free when JAX drops the buffer, by the last reference or by
donation; numpy's array below the buffer tells when that is.
"""

import mmap
import weakref

import numpy

_NORESERVE = 0x4000  # of Linux' mmap: no memory is set aside
_MAPPING_BYTES = (1 << 44, 1 << 41, 1 << 38)  # of addresses; less if the system allows no more
_STEP = 64  # the alignment with which the CPU client takes memory over

SMALL_BYTES = 1 << 20  # an array up to this size keeps its values


class Buffer:
    """The memory of one array on one device. `number` is that of its request; None: memory without a request."""

    __slots__ = ("address", "number", "size", "value", "device", "pinned")

    def __init__(self, number, size, value, device, pinned=False):
        self.address, self.number, self.size = None, number, size
        self.value, self.device, self.pinned = value, device, pinned


class Arrays:
    """Makes stand-ins and finds their buffers. `released` is called with each Buffer that JAX has dropped."""

    def __init__(self, released):
        from jax._src.lib import _jax, xla_client

        self.released = released
        self.put = xla_client.batched_device_put  # JAX's own
        self.collect = _jax.collect_garbage
        self.array_type = xla_client.ArrayImpl
        self.zero_copy = xla_client.HostBufferSemantics.ZERO_COPY
        self.buffers = {}  # by address
        self.shardings = {}
        self.next_at = 0
        self.mapping = None

    @staticmethod
    def _map():
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        for size in _MAPPING_BYTES:
            try:
                return numpy.frombuffer(mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ), numpy.uint8)
            except OSError as error:
                refused = error
        raise MemoryError(f"allocrig trace: no {_MAPPING_BYTES[-1] >> 30} GiB of addresses for arrays: {refused}")

    def _zeros(self, shape, dtype):
        """An array of zeros at an address of its own. Addresses overlap: nothing is ever written there."""
        size = int(numpy.prod(shape, dtype=object)) * dtype.itemsize
        if self.mapping is None:
            self.mapping = self._map()
        if size > self.mapping.size // 2:
            raise MemoryError(f"allocrig trace: an array of {size} bytes is larger than any card")
        if self.next_at + size > self.mapping.size:
            self.next_at = 0  # addresses of arrays that are gone by now
        while self.mapping.ctypes.data + self.next_at in self.buffers:
            self.next_at += _STEP
        at = self.next_at
        self.next_at += _STEP
        return self.mapping[at : at + size].view(dtype).reshape(shape)

    @staticmethod
    def _copy(value):
        """A copy of an array at an address that the CPU client takes over."""
        room = numpy.empty(value.nbytes + _STEP, numpy.uint8)
        at = -room.ctypes.data % _STEP
        copy = room[at : at + value.nbytes].view(value.dtype).reshape(value.shape)
        copy[...] = value
        return copy

    def sharding(self, device, kind):
        from jax.sharding import SingleDeviceSharding

        key = (device.id, kind)
        if key not in self.shardings:
            self.shardings[key] = SingleDeviceSharding(device, memory_kind=kind)
        return self.shardings[key]

    def make(self, buffer, shape, dtype, device, kind=None):
        """A stand-in on one device for `buffer`, with its value if that is known."""
        from jax._src import core

        dtype = numpy.dtype(dtype)
        below = self._zeros(shape, dtype) if buffer.value is None else self._copy(buffer.value)
        if below.nbytes:
            buffer.address = below.ctypes.data
            self.buffers[buffer.address] = buffer
            weakref.finalize(below, self._dropped, buffer).atexit = False
        elif buffer.number is not None:
            self.released(buffer)
        aval = core.ShapedArray(tuple(shape), dtype)
        return self.put(
            aval, self.sharding(device, kind), [below], [device], True, host_buffer_semantics=self.zero_copy
        )

    def _dropped(self, buffer):
        if self.buffers.get(buffer.address) is buffer:
            del self.buffers[buffer.address]
        self.released(buffer)

    def find(self, array):
        """The Buffer of an array on one device, or None if the array has no memory or was made elsewhere."""
        return self.buffers.get(array.unsafe_buffer_pointer()) if array.size else None

    @staticmethod
    def pieces(array):
        """The arrays on each device of an array."""
        if array.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={array.aval.str_short()}.")
        return array._arrays
