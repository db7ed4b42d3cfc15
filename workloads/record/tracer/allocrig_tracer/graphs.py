"""CUDA graphs and private pools: torch.cuda.CUDAGraph, graph_pool_handle, MemPool, and memory without a tensor.

A capture allocates from a private pool, and what is freed during a capture goes back to that pool. A replay allocates
nothing. The pool keeps its memory until the last graph that uses it is deleted; PyTorch then releases it with the next
`empty_cache`. Sources: ATen/cuda/CUDAGraph.cpp, CUDAGeneratorImpl.cpp, MemPool.cpp and c10/cuda/CUDACachingAllocator.cpp
of PyTorch 2.11.
"""

import threading
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import allocator
from .ledger import Ledger


class Pools:
    """The private pools of the program. A handle is the pair of numbers that PyTorch gives to a pool."""

    def __init__(self, current):
        self.current = current
        self.made = 0
        self.numbers = {}  # handle -> number of the pool in the trace
        self.uses = {}  # handle -> captures, graphs, MemPools that hold it
        self.options = {}  # handle of a MemPool -> its options in the trace
        self.active = []  # (handle, capture?, thread, in backward?) of each context that allocates from a pool
        self.ended = []  # numbers of pools without a user, which the next empty_cache releases
        self.unowned = {}  # address -> Block that no storage owns
        self.captures = 0
        self.seeds = ()  # the state of the random generator that graphs share
        self.last_number = 0

    def handle(self, user=True):
        """A new handle: graphs count in the first number, users in the second."""
        self.made += 1
        return (0, self.made) if user else (self.made, 0)

    def begin(self, handle, capture):
        self.uses[handle] = self.uses.get(handle, 0) + 1
        session = self.current()
        conf = session.ledger.conf if session is not None else ""
        if not allocator.policy_of(conf).startswith("torch"):
            session.refuse(f"under {conf} the memory of CUDA graphs and private pools is not known here")
        self.active.append((handle, capture, threading.get_ident(), session is not None and session.in_backward()))

    def end(self, handle):
        for i in reversed(range(len(self.active))):
            if self.active[i][0] == handle:
                del self.active[i]
                return

    def release(self, handle):
        """One user of a pool less. A pool without users loses its memory with the next empty_cache."""
        self.uses[handle] -= 1
        if not self.uses[handle] and handle in self.numbers:
            self.ended.append(self.numbers.pop(handle))

    def now(self):
        """The handle that a request of this thread goes to, or None.

        A capture holds for every thread: the autograd thread runs on the captured stream. Other contexts hold for the
        thread that entered them, and backward runs in a thread of its own on a card.
        """
        for handle, capture, thread, backward in reversed(self.active):
            if capture or (thread == threading.get_ident() and backward == self.current().in_backward()):
                return handle
        return None

    def number(self):
        handle = self.now()
        if handle is None:
            return 0
        if handle not in self.numbers:
            self.last_number += 1
            self.numbers[handle] = self.last_number
        return self.numbers[handle]


def install(current):
    """Puts the stand-ins into torch.cuda, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    pools = install.pools = Pools(current)
    Ledger.pool = property(lambda self: pools.number() if pools.active else 0, lambda self, value: None)
    Ledger.mempool = property(lambda self: pools.options.get(pools.now()), lambda self, value: None)
    _graphs(current, pools)
    _mempools(current, pools)
    _without_tensor(current, pools)
    _addresses()


def _graphs(current, pools):
    cuda = torch.cuda

    class CUDAGraph:
        """Stands for torch.cuda.CUDAGraph: a capture runs the program as usual, a replay does nothing."""

        def __init__(self, keep_graph=False):
            self._handle, self._captured = None, False

        def capture_begin(self, pool=None, capture_error_mode="global"):
            if self._captured:
                raise RuntimeError(
                    "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
                )
            if not pools.captures:
                pools.seeds = [torch.empty(1, dtype=torch.int64, device=current().current_device()) for _ in range(2)]
            pools.captures += 1
            self._handle = tuple(pool) if pool else pools.handle(user=False)
            self._captured = True
            pools.begin(self._handle, True)

        def capture_end(self):
            pools.end(self._handle)

        def replay(self):
            pass

        instantiate = enable_debug_mode = replay

        def debug_dump(self, path):
            pass

        def register_generator_state(self, generator):
            pass

        def raw_cuda_graph(self):
            return id(self)

        raw_cuda_graph_exec = raw_cuda_graph

        def pool(self):
            return self._handle

        def reset(self):
            if self._captured:
                self._captured = False
                pools.captures -= 1
                if not pools.captures:
                    pools.seeds = ()
                pools.release(self._handle)

        def __del__(self):
            self.reset()

    empty = cuda.empty_cache

    def empty_cache():
        session = current()
        if session is not None and session.active():
            for number in pools.ended:
                session.ledger.end_pool(number)
            pools.ended.clear()
        empty()

    def capturing():
        return any(capture for _, capture, _, _ in pools.active)

    def empty_host_cache():
        session = current()
        if session is not None and session.active():
            session.trace.event("c", space="pinned")

    for module in (cuda, cuda.graphs):
        module.CUDAGraph = CUDAGraph
        module.graph_pool_handle = pools.handle
        module.is_current_stream_capturing = capturing
    cuda.empty_cache = cuda.memory.empty_cache = empty_cache
    cuda.graphs._graph_pool_handle = torch._C._graph_pool_handle = pools.handle
    cuda.graphs._cuda_isCurrentStreamCapturing = torch._C._cuda_isCurrentStreamCapturing = capturing
    torch._C._host_emptyCache = empty_host_cache
    torch._C._cuda_beginAllocateCurrentThreadToPool = lambda device, handle: pools.begin(tuple(handle), False)
    torch._C._cuda_beginAllocateToPool = lambda device, handle: pools.begin(tuple(handle), False)
    torch._C._cuda_endAllocateToPool = lambda device, handle: pools.end(tuple(handle))
    torch._C._cuda_releasePool = lambda device, handle: pools.release(tuple(handle))
    for name in ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_endAllocateToPool", "_cuda_releasePool"):
        setattr(cuda.memory, name, getattr(torch._C, name))


def _mempools(current, pools):
    class MemPool:
        """Stands for torch.cuda.MemPool."""

        def __init__(self, allocator=None, use_on_oom=False, no_split=False):
            if allocator is not None:
                current().refuse("the program gives a MemPool an allocator of its own: what that asks of the card is not known")
            self.allocator = allocator
            self._id = pools.handle()
            names = [name for name, on in (("use_on_oom", use_on_oom), ("no_split", no_split)) if on]
            pools.options[self._id] = "+".join(names) or "plain"
            pools.uses[self._id] = 1

        @property
        def id(self):
            return self._id

        def use_count(self):
            return pools.uses[self._id]

        def snapshot(self, include_traces=True):
            return []

        def __del__(self):
            session, number = current(), pools.numbers.pop(self._id, None)
            if session is not None and session.active() and not session.ledger.closed and number:
                session.ledger.end_pool(number, pools.options[self._id])

    torch.cuda.MemPool = torch.cuda.memory.MemPool = MemPool


def _without_tensor(current, pools):
    """Memory that the program takes by address, and allocators that replace PyTorch's."""
    def allocate(size, stream=0):
        session = current()
        device = session.current_device().index
        block = session.ledger.request(size, device=device, stream=stream, tag="caching_allocator_alloc")
        address = Addresses.take(size)
        pools.unowned[address] = block
        return address

    def delete(address):
        current().ledger.release(pools.unowned.pop(address, None))

    def refused(*args, **kwargs):
        current().refuse("the program replaces PyTorch's caching allocator by one of its own: what that asks of the card is not known")

    class Pluggable(torch.cuda.memory._CUDAAllocator):
        """Stands for torch.cuda.memory.CUDAPluggableAllocator: its library needs the driver."""

        def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
            super().__init__(self)

    torch._C._cuda_cudaCachingAllocator_raw_alloc = allocate
    torch._C._cuda_cudaCachingAllocator_raw_delete = delete
    for module in (torch.cuda.memory, torch.cuda):
        module.change_current_allocator, module.CUDAPluggableAllocator = refused, Pluggable


class Addresses:
    """Addresses of storages without data. None is used twice, unlike those of StorageImpl objects."""

    next = 1 << 44
    of_storage = {}  # address of the StorageImpl -> (address, weak reference on the storage)

    @classmethod
    def take(cls, size):
        address = cls.next
        cls.next += (size + 511) // 512 * 512
        return address

    @classmethod
    def bind(cls, storage, address):
        key = storage._cdata
        cls.of_storage[key] = (address, weakref.ref(storage, lambda _: cls.of_storage.pop(key, None)))

    @classmethod
    def of(cls, storage):
        """The address of a storage, 0 for an empty one."""
        found = cls.of_storage.get(storage._cdata)
        if found is None:
            if not storage.nbytes():
                return 0
            cls.bind(storage, cls.take(storage.nbytes()))
            found = cls.of_storage[storage._cdata]
        return found[0]


def _addresses():
    data_ptr, storage_ptr = torch.Tensor.data_ptr, torch.UntypedStorage.data_ptr

    def address(self):
        if not isinstance(self, FakeTensor):
            return data_ptr(self)
        base = Addresses.of(self.untyped_storage())
        return base + self.storage_offset() * self.element_size() if base else 0

    def storage_address(self):
        return Addresses.of(self) if self.device.type == "meta" else storage_ptr(self)

    torch.Tensor.data_ptr = address
    torch.UntypedStorage.data_ptr = storage_address


class Checkpoint:
    """The blocks of a pool at a moment, as _cuda_getCheckpointState has them (used by graph_trees.py)."""

    def __init__(self, ledger, number):
        self.number = number
        self.blocks = []  # (address, bytes, device, stream)
        for key, block in ledger.storages.items():
            if block is not None and block.pool == number and key in Addresses.of_storage:
                self.blocks.append((Addresses.of_storage[key][0], block.size, block.device, block.stream))

    def restore(self, ledger, live, unowned):
        """Makes the pool's blocks those of the checkpoint. `live`: StorageImpls that own some of them again.

        The other blocks are `unowned`, by their addresses, until they are deleted.
        """
        wanted = {address for address, *_ in self.blocks}
        here = {}
        for key, block in list(ledger.storages.items()):
            if block is not None and block.pool == self.number:
                address = Addresses.of_storage[key][0] if key in Addresses.of_storage else None
                if address in wanted:
                    here[address] = block
                else:
                    ledger.destroyed(key)
        owners = {Addresses.of_storage[key][0]: key for key in live if key in Addresses.of_storage}
        for address, size, device, stream in self.blocks:
            if address in here:
                continue
            block = ledger.request(size, device=device, stream=stream, tag="graph outputs", pool=self.number)
            owner = owners.get(address)
            if owner is not None:
                ledger.storages.pop(owner, None)
                ledger.adopt(torch.UntypedStorage._new_with_weak_ptr(owner), block)
            else:
                unowned[address] = block
