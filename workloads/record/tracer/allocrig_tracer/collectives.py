"""Collectives of torch.distributed on tensors without data: what ProcessGroupNCCL allocates, keeps and returns.

Every collective of PyTorch, also those that its C++ code starts (the reducer of DDP), passes the dispatcher as an
operator `c10d::NAME` or `_c10d_functional::NAME`. The functions here stand in for them, by the rules of
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp of PyTorch 2.11:

- The communicator of a group is made at its first operation (nccl.py counts its bytes). A send or receive that is not
  batched has a communicator of two ranks of its own, unless the program gave init_process_group a device_id.
- An operation with async_op=False runs on the current stream. One with async_op=True runs on a stream of NCCL's, and
  its inputs and outputs are kept until the program waits for it. No block is recorded on NCCL's stream.
- all_gather and reduce_scatter with lists of equal tensors copy through one flat tensor; a barrier reduces one float.
"""

import collections
import itertools

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import distributed_c10d as c10d

from . import kernel_times, nccl, values
from .fake import where_in_program
from .rank_values import give_value, reduced, set_values

EVENTS = 64  # events that the operations of a group record in turn

# A Work that only C++ code holds has lost its Python half, whose functions it needs. These keep no tensor alive.
recent = collections.deque(maxlen=8)


class TracedWork(dist.Work):
    """The handle of an operation: `wait` drops what NCCL's stream might still use. `get_future` is asked for once."""

    def __init__(self, result, tensors=(), blocks=(), ledger=None):
        super().__init__()
        self._result, self._tensors, self._blocks, self._ledger = result, list(tensors), list(blocks), ledger
        self.end = None  # the event after the operation's kernel on NCCL's stream
        self.groups = None

    def take_over(self, other):
        self.end, self.groups = other.end or self.end, other.groups
        self._tensors += other._tensors
        self._blocks += other._blocks
        other._tensors, other._blocks = [], []

    def drop(self):
        self._tensors = self._result = []
        for block in self._blocks:
            self._ledger.release(block)
        self._blocks = []

    def wait(self, timeout=None):
        if self.end is not None:
            torch.cuda.current_stream().wait_event(self.end)
            self.end = None
        self.drop()
        return True

    def synchronize(self):
        self.wait()

    block_current_stream = synchronize

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(self._result)
        if self.end is not None:
            self.groups.futures.append(self.end)
        if self.groups is not None:  # nobody waits for the Work itself: see Groups.shelf
            self.groups.shelf.append((self._tensors, self._blocks))
            self._tensors, self._blocks = [], []
        self.drop()  # the future keeps the result; DDP waits for it when backward ends
        return future

    def result(self):
        return self._result

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def exception(self):
        return None

    def __del__(self):
        if getattr(self, "_blocks", None):
            self.drop()


class Groups:
    """The communicators of the process and what PyTorch's groups add to them. One for each session."""

    def __init__(self, session, rank, ranks_per_node):
        self.session, self.rank = session, rank
        name, sm = session.card.name, int(float(session.card.sm) * 10 + 0.5)
        self.machine = nccl.Machine(name, sm, ranks_per_node)
        self.communicators = {}
        self.eager = False  # init_process_group had a device_id: sends use the group's own communicator
        self.batched = {}  # name of a group that coalesces now -> its Work
        self.redop = "SUM"
        self.waiting = {}  # storage of a functional collective's result -> its Work
        self.streams = {}  # name of a group -> NCCL's stream of the group, and its events
        self.futures = []  # events of operations that DDP waits for at the end of backward
        # ProcessGroupNCCL.cpp, shelvesToUnstash_: what a Work keeps for NCCL's stream is dropped by `wait`; without one,
        # by the first operation after the watchdog, which looks every 100 ms, has seen that it is done. Operations of one
        # backward are taken to be done when the next begins.
        self.shelf, self.seen = [], []

    def communicator(self, group, pair=None):
        """The communicator of a group, or of this rank and one peer, made if it is not there. Returns it."""
        key = (group.group_name, pair)
        found = self.communicators.get(key)
        if found is None:
            ranks = pair or members(group)
            found = self.communicators[key] = nccl.Communicator(self.machine, ranks, self.rank)
            self.took(found.start())
        return found

    def took(self, size):
        """NCCL has taken so many bytes more, or has given back -size."""
        if size:
            session = self.session
            session.outside_bytes = getattr(session, "outside_bytes", 0) + size
            if not session.ledger.closed:
                session.trace.event("o", session.outside_bytes, device=session.current_device().index or None)
            if size > 0:
                session.ledger.count_rule("nccl", size)

    def destroyed(self, name):
        """The communicators of a group are destroyed, or all of them."""
        gone = [key for key in self.communicators if name is None or key[0] == name]
        self.took(-sum(self.communicators.pop(key).bytes for key in gone))

    def connect(self, op, group, size, peers=None):
        """The connections that an operation needs, with `size` bytes in this rank's buffer. Returns its time."""
        me = self.rank
        self.unstash()
        if op in ("send", "recv"):
            peer = members(group)[peers]
            alone = not self.eager and group.group_name not in self.batched
            pair = (min(me, peer), max(me, peer)) if alone else None
            both = self.communicator(group, pair)
            self.took(both.p2p((peer,) if op == "send" else (), (peer,) if op == "recv" else ()))
            return both.nanoseconds(op, size)
        communicator = self.communicator(group)
        if op in ("all_reduce", "barrier"):
            self.took(communicator.all_reduce(size))
        elif op == "all_to_all":
            self.took(communicator.p2p(communicator.ranks, communicator.ranks))
        elif op in ("gather", "scatter"):
            root = members(group)[peers]
            others = communicator.ranks if me == root else (root,)
            send = (op == "scatter") == (me == root)
            self.took(communicator.p2p(others if send else (), () if send else others))
        else:
            self.took(communicator.ring())
        return communicator.nanoseconds(op, size)

    def kernel(self, group, time, asynchronous):
        """Writes the kernel of an operation, on NCCL's stream if it is asynchronous. Returns the event after it."""
        session = self.session
        if not session.kernel_times:
            return None
        session.host_ns += kernel_times.HOST_NS
        session.trace.event("t", int(session.host_ns))
        current = stream = torch.cuda.current_stream()
        if asynchronous:
            if group.group_name not in self.streams:
                events = itertools.cycle([torch.cuda.Event() for _ in range(EVENTS)])
                self.streams[group.group_name] = torch.cuda.Stream(current.device), torch.cuda.Event(), events
            stream, start, events = self.streams[group.group_name]
            stream.wait_event(current.record_event(start))
        session.trace.event("k", session.ledger.ordinal(stream.device_index, stream.number), time)
        return stream.record_event(next(events)) if asynchronous else None

    def rejoin(self):
        """The current stream waits for what DDP started in backward."""
        for event in self.futures:
            torch.cuda.current_stream().wait_event(event)
        self.futures = []
        self.seen += self.shelf
        self.shelf = []

    def unstash(self):
        """Drops what the operations of the backward passes before this one kept."""
        for _, blocks in self.seen:
            for block in blocks:
                self.session.ledger.release(block)
        self.seen = []


def members(group):
    """Global ranks of a group, in order."""
    return dist.get_process_group_ranks(group)


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def on_card(tensors):
    return any(isinstance(t, FakeTensor) and t.fake_device.type == "cuda" for t in tensors)


KINDS = {  # c10d operator -> (kind, argument with outputs, argument with inputs)
    "allreduce_": ("all_reduce", "tensors", "tensors"),
    "allreduce_coalesced_": ("all_reduce", "tensors", "tensors"),
    "broadcast_": ("broadcast", "tensors", "tensors"),
    "reduce_": ("reduce", "tensors", "tensors"),
    "allgather_": ("all_gather", "output_tensors", "input_tensors"),
    "_allgather_base_": ("all_gather", "output_tensor", "input_tensor"),
    "allgather_coalesced_": ("all_gather", "output_lists", "input_list"),
    "allgather_into_tensor_coalesced_": ("all_gather", "outputs", "inputs"),
    "reduce_scatter_": ("reduce_scatter", "output_tensors", "input_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter", "output_tensor", "input_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", "outputs", "inputs"),
    "alltoall_base_": ("all_to_all", "output", "input"),
    "alltoall_": ("all_to_all", "output_tensors", "input_tensors"),
    "gather_": ("gather", "output_tensors", "input_tensors"),
    "scatter_": ("scatter", "output_tensors", "input_tensors"),
    "send": ("send", None, "tensors"),
    "recv_": ("recv", "tensors", None),
    "recv_any_source_": ("recv", "tensors", None),
    "barrier": ("barrier", None, "tensor"),
}


def tensors_of(value):
    """All tensors of an argument: a tensor, a list of them or a list of lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value or () for t in tensors_of(v)]


def c10d_operator(groups, mode, func, args, kwargs):
    """Stands in for an operator `c10d::NAME`: returns what it returns."""
    session = groups.session
    named = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    name = func._schema.name.split("::")[1]
    kind, out_name, in_name = KINDS[name]
    group = dist.ProcessGroup.unbox(named["process_group"])
    outs, inputs = tensors_of(named.get(out_name)), tensors_of(named.get(in_name))
    peer = named.get("dst", named.get("src", named.get("root_rank")))
    asynchronous = named.get("async_op", True)
    blocks, end = [], None
    if on_card(outs + inputs):
        time = groups.connect(kind, group, bytes_of(inputs or outs), peer if peer is not None else 0)
        end = groups.kernel(group, time, asynchronous)
        blocks = flat_copies(session, name, outs, inputs, (outs + inputs)[0].fake_device.index)
    set_values(groups, kind, group, outs, inputs, peer)
    result = named[out_name] if out_name else inputs
    work = TracedWork(outs or inputs, outs + inputs if asynchronous else (), blocks, session.ledger)
    work.end, work.groups = end, groups
    if not asynchronous:
        work.drop()
    if group.group_name in groups.batched:
        groups.batched[group.group_name].take_over(work)
    recent.append(work)
    return work.boxed() if len(func._schema.returns) == 1 else (result, work.boxed())


def flat_copies(session, name, outs, inputs, device):
    """The flat tensor of all_gather and reduce_scatter with lists (newLikeFlat), and the tensor of a barrier."""
    ledger, where = session.ledger, {"device": device, "stream": session.stream_now(device), "at": where_in_program()}
    if name == "barrier":
        return [ledger.request(4, tag="barrier", **where)]
    listed = {"allgather_": outs, "reduce_scatter_": inputs}.get(name)
    if listed and len({t.shape for t in listed}) == 1:
        return [ledger.request(bytes_of(listed), tag=f"c10d:{name.strip('_')} flat", **where)]
    return []


FUNCTIONAL = {  # _c10d_functional operator without its ending -> kind
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_out": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "broadcast": "broadcast",
}


def functional_operator(groups, mode, func, args, kwargs):
    """Stands in for an operator `_c10d_functional::NAME`: a result of its own, and inputs kept until wait_tensor."""
    session = groups.session
    name = func._schema.name.split("::")[1]
    if name == "wait_tensor":
        work = groups.waiting.pop(args[0].untyped_storage()._cdata, None)
        if work is not None:
            work.wait()
        return args[0]
    in_place = name.endswith("_") or name.endswith("_out")
    named = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    inputs = tensors_of(args[0])
    kind = FUNCTIONAL[name.rstrip("_")]
    group = c10d._resolve_process_group(named["group_name"])
    end = None
    if on_card(inputs):
        end = groups.kernel(group, groups.connect(kind, group, bytes_of(inputs), 0), True)
        with mode.fake:
            result = func(*args, **kwargs)
    elif in_place:
        result = named.get("out", args[0])
    else:
        result = real_result(session, kind, func, args, named, group)
    outs = tensors_of(result)
    if not in_place:
        adopt(mode, outs, name)
    groups.redop, before = str(named.get("reduce_op", "sum")), groups.redop
    if kind in ("all_reduce", "broadcast") and not in_place:
        for t, source in zip(outs, inputs):
            value = values.value_of(source)
            if kind == "all_reduce":
                value = reduced(session, value, group.size(), groups.redop)
            give_value(session, t, value)
    else:
        set_values(groups, kind, group, outs, inputs, None)
    groups.redop = before
    work = TracedWork(outs, inputs, (), session.ledger)
    work.end, work.groups, work._result = end, groups, []
    for t in outs:
        groups.waiting[t.untyped_storage()._cdata] = work
    return result


def real_result(session, kind, func, args, named, group):
    """Empty results of the right sizes for tensors of the CPU."""
    with session.paused():
        meta = func(*[a.to("meta") if isinstance(a, torch.Tensor) else a for a in args])
        outs = tensors_of(meta)
        made = [torch.zeros(t.shape, dtype=t.dtype, device="cpu") for t in outs]
    return made[0] if isinstance(meta, torch.Tensor) else made


def adopt(mode, outs, name):
    """Writes the requests of new results."""
    session, ledger = mode.session, mode.ledger
    for t in outs:
        if isinstance(t, FakeTensor) and t.fake_device.type == "cuda":
            storage = t.untyped_storage()
            if storage._cdata not in ledger.storages:
                device, module = t.fake_device.index, session.module_now()
                where = {"device": device, "stream": session.stream_now(device), "at": where_in_program()}
                block = ledger.request(storage.nbytes(), tag=f"{module}:{name}" if module else name, **where)
                ledger.adopt(storage, block)
