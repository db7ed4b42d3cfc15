"""Turns storages of fake tensors into requests and frees of a trace.

A storage is requested when an operator returns it for the first time and freed when PyTorch destroys it, which is when
the real program would call its caching allocator. Weak references on the storages tell the moment.
"""

import os
import threading
import weakref
from collections import Counter

from . import allocator, driver
from .trace_file import text_of


def rounded(size):
    """Bytes that PyTorch's allocator counts as allocated for a request: multiples of 512."""
    return (size + 511) // 512 * 512


class Block:
    """One request that has not been freed."""

    __slots__ = ("number", "size", "device", "stream", "pinned", "watch", "pool", "given")

    def __init__(self, number, size, device, stream, pinned):
        self.number, self.size, self.device, self.stream, self.pinned = number, size, device, stream, pinned
        self.watch, self.pool, self.given = None, 0, None


class Ledger:
    """All live requests of the program. One per process; child processes of a fork record nothing."""

    def __init__(self, trace):
        self.trace = trace
        self.pid = os.getpid()
        self.next_number = 0
        self.storages = {}  # address of the StorageImpl -> Block
        self.kept = {}  # key of a workspace that lives as long as the process -> Block
        self.streams = {(0, 0): 0}  # (device, stream of that device) -> ordinal in the trace
        self.live = Counter()  # device -> bytes, rounded as PyTorch's statistics count them
        self.peak = Counter()
        self.pool = 0  # the private pool of requests now: graphs.py sets it
        self.mempool = None
        self.choices = {}  # of plans -> its number in the trace
        self.rules = {}  # name -> [count, bytes]
        self.steps = 0
        self.card_bytes, self.conf, self.limit = 0, "", 0  # of the card; 0: no allocator stands beside the ledger
        self.allocators, self.later_confs = {}, []  # device -> Allocator; settings that the program sets after the first request
        self.devices = 0  # of the machine that the program sees; 0: any number
        self.driver = driver.Driver(trace)
        self.raised = 0  # errors because there is no memory
        self.closed = False
        self.lock = threading.RLock()

    def ordinal(self, device, stream):
        """The number in the trace of a stream of a device. Stream 0 is the device's default stream."""
        return self.streams.setdefault((device, stream), len(self.streams))

    def request(self, size, device=0, stream=0, tag="", at="", pinned=False, pool=None, may_fail=False, plans=()):
        """Writes a request and returns its Block; None for 0 bytes, of which an allocator never hears.

        plans: (CHOICE, SIZES) of a request that may fail, if SIZES are tried after `size`.
        """
        if size <= 0 or self.closed or os.getpid() != self.pid:
            return None
        with self.lock:
            self.driver.grow(driver.LOCAL)
            block = Block(self.next_number, size, device, stream, pinned)
            keys, ordinal = {"tag": tag}, self.ordinal(device, stream)
            if pinned:
                keys["space"] = "pinned"
            else:
                pool = self.pool if pool is None else pool
                block.pool = pool or None
                self.serve(block, ordinal, may_fail, plans)
                keys["pool"] = block.pool
                keys["device"] = device or None
                keys["mempool"] = self.mempool if pool else None
                if plans:
                    choice = self.choices.setdefault(plans[0], len(self.choices))
                    keys["plans"] = f"{choice}:{'/'.join(map(str, (size, *plans[1])))}"
                self.live[device] += rounded(size)
                self.peak[device] = max(self.peak[device], self.live[device])
            self.next_number += 1
            fields = (block.number, size) if not ordinal else (block.number, size, ordinal)
            self.trace.event("p" if may_fail else "a", *fields, **keys, at=at)
            return block

    def allocator(self, device):
        """PyTorch's allocator of a device."""
        if not self.allocators:
            self.conf = allocator.conf_at_first_request(self.conf)
        if device not in self.allocators:
            if self.devices and device >= self.devices:
                raise RuntimeError(f"CUDA error: invalid device ordinal: the program uses cuda:{device}, and the machine "
                                   f"that allocrig shows it has {self.devices} card(s); ALLOCRIG_TRACE_DEVICES sets another number")
            limit = self.card_bytes - allocator.CONTEXT
            of = self.allocators[device] = allocator.Allocator(self.conf, min(limit, self.limit or limit))
            for conf in self.later_confs:
                of.set_conf(conf)
        return self.allocators[device]

    def set_conf(self, conf):
        """The program sets the allocator's settings again, also for devices that it has not used yet."""
        self.trace.settings(conf)
        self.allocator(0)
        self.later_confs.append(conf)
        for of in self.allocators.values():
            of.set_conf(conf)

    def set_limit(self, limit):
        """From here on each card serves at most `limit` bytes."""
        self.limit = limit
        for device in [*self.allocators, 0]:
            self.allocator(device).set_limit(min(limit, self.card_bytes - allocator.CONTEXT))

    def serve(self, block, ordinal, may_fail, plans):
        """Asks the allocator. If there is no memory, the program gets PyTorch's error if it expects one: the allocator
        has released what it had cached. Other programs go on, beyond the limit."""
        if not self.card_bytes:
            return
        of = self.allocator(block.device)
        block.given = of.take(block.size, ordinal, block.pool or 0)
        for other in plans[1] if plans else ():
            if block.given is None and block.size:
                block.size = other
                block.given = of.take(other, ordinal, block.pool or 0) if other else None
        if block.given is not None or may_fail:
            return
        if allocator.is_caught(block.size > self.card_bytes):
            self.raised += 1
            self.empty_cache()
            raise allocator.error(block.device, block.size, self.card_bytes, of)
        of.set_limit(allocator.UNLIMITED)
        block.given = of.take(block.size, ordinal, block.pool or 0)

    def end_pool(self, pool, mempool=None):
        """A private pool has ended: its free memory is released."""
        self.trace.event("c", pool=pool, mempool=mempool)
        for of in self.allocators.values():
            of.empty_cache(pool, mempool is not None)

    def empty_cache(self):
        self.trace.event("c")
        for of in self.allocators.values():
            of.empty_cache()

    def release(self, block):
        """Writes the free of a block. Nothing happens for None."""
        if block is None or self.closed or os.getpid() != self.pid:
            return
        with self.lock:
            if not block.pinned:
                self.live[block.device] -= rounded(block.size)
                if block.given is not None:
                    self.allocators[block.device].drop(block.given)
            self.trace.event("r", block.number)

    def adopt(self, storage, block):
        """Binds a block to a storage: it is freed when the storage is destroyed."""
        if block is None:
            return
        address = storage._cdata
        block.watch = weakref.ref(storage, lambda _: self.destroyed(address))
        self.storages[address] = block

    def destroyed(self, address):
        """Called when PyTorch has destroyed the storage at this address, or has emptied it."""
        self.release(self.storages.pop(address, None))

    def of(self, tensor):
        """The block of a tensor's storage, or None."""
        return self.storages.get(tensor.untyped_storage()._cdata)

    def keep(self, key, size, **where):
        """Requests a workspace that lives as long as the process, once for each key."""
        if key not in self.kept:
            if key[0] == "cublas" and not self.closed:
                self.driver.handle(*key[1:3])
            self.kept[key] = self.request(size, **where)
            self.count_rule(str(key[0]) if isinstance(key, tuple) else str(key), size)

    def drop(self, keys):
        """Frees kept workspaces, for example when the program clears them."""
        for key in [k for k in self.kept if keys(k)]:
            self.release(self.kept.pop(key))

    def use(self, block, device, stream):
        """The block is used on a stream from here on, so that its free waits for that stream."""
        if block is not None and not self.closed:
            self.trace.event("u", block.number, self.ordinal(device, stream))

    def count_rule(self, name, size):
        """Counts bytes that a stated rule added; they are written at the end."""
        entry = self.rules.setdefault(name, [0, 0])
        entry[0] += 1
        entry[1] += size

    def step(self):
        """Ends a step of the program."""
        if not self.closed:
            self.steps += 1
            self.trace.event("m", "step")

    def mark(self, label):
        """A mark of the program: torch.cuda.nvtx.mark."""
        if not self.closed:
            self.trace.event("m", text_of(str(label)))

    def close(self):
        """No event follows: what the interpreter destroys at its end is not a free of the program."""
        self.closed = True
