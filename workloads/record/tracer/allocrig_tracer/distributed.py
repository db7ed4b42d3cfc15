"""One rank of a program of torch.distributed, traced alone: process groups without other processes.

Every process group becomes PyTorch's fake one (FakeProcessGroup): its operations return at once, and collectives.py
stands in for what ProcessGroupNCCL and NCCL do with memory. DDP, FSDP, tensor and pipeline parallelism are PyTorch's
own code, run as it is. The rank and the number of ranks come from ALLOCRIG_TRACE_RANK and ALLOCRIG_TRACE_WORLD, else
from RANK and WORLD_SIZE, else from the program's own arguments of init_process_group.
"""

import functools
import importlib
import os

import torch
from torch._subclasses.fake_tensor import FakeTensor


def install(current):
    """Puts the functions in place of PyTorch's, once. `current` returns the running session or None."""
    if getattr(install, "done", False) or not torch.distributed.is_available():
        return
    install.done = True
    from . import launchers, objects

    launchers.install(current)
    dist, c10d = torch.distributed, torch.distributed.distributed_c10d
    set_environment(current())
    _groups(current, dist, c10d)
    _group_object(current, dist, c10d)
    _reductions(current, dist, c10d)
    objects.install(current)
    dist._verify_params_across_processes = _verify_parameters
    dist.Logger.set_runtime_stats_and_log = lambda self: None  # it warns of devices other than CUDA's and the CPU


def number(*names):
    """The first of these environment variables that is a number, or None."""
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def rank_and_world():
    """(rank, number of ranks) that the environment names; None for what it does not name."""
    return number("ALLOCRIG_TRACE_RANK", "RANK"), number("ALLOCRIG_TRACE_WORLD", "WORLD_SIZE")


def ranks_per_node(world):
    """Ranks of each node: LOCAL_WORLD_SIZE, else 8 at most."""
    return number("LOCAL_WORLD_SIZE") or min(world, 8)


def set_environment(session):
    """Sets what a launcher would set, so that scripts that read it run."""
    rank, world = rank_and_world()
    if world is None:
        return
    rank = rank or 0
    local = ranks_per_node(world)
    session.devices = max(session.devices, local)
    for name, value in (
        ("RANK", rank), ("WORLD_SIZE", world), ("LOCAL_RANK", rank % local), ("LOCAL_WORLD_SIZE", local),
        ("GROUP_RANK", rank // local), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"),
    ):  # fmt: skip
        os.environ.setdefault(name, str(value))


def groups_of(session):
    """The Groups of a session, or None before init_process_group."""
    return getattr(session, "groups", None)


def _backend(current, group_class):
    """A stand-in for the class of a backend: makes a fake group, and isinstance holds for it."""

    class Kind(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, group_class)

        def __getattr__(cls, name):
            return getattr(group_class, name)

    class Options:
        """Options of ProcessGroupNCCL: any attribute may be set, none has an effect."""

        is_high_priority_stream = False
        _timeout = None

        def __init__(self, *args, **kwargs):
            self.config = type("Config", (), {})()

    class Stand(metaclass=Kind):
        Options = None

        def __new__(cls, store, rank, size, *rest, **options):
            if not hasattr(group_class, "_create_internal"):  # before 2.9
                return group_class(rank, size)
            return group_class._create_internal(rank, size, group_class.Options())

        @staticmethod
        def create_device(*args, **kwargs):
            return None

    Stand.Options = Options
    return Stand


def _groups(current, dist, c10d):
    """init_process_group, new_group and split_group."""
    from torch.testing._internal.distributed import fake_pg

    from . import collectives

    group_class = fake_pg.FakeProcessGroup
    group_class._set_sequence_number_for_group = lambda self: None
    group_class.supports_coalescing = property(lambda self: True)
    group_class.supports_splitting = property(lambda self: False)
    group_class.options = property(lambda self: stand.Options())
    stand = _backend(current, group_class)
    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupGloo", "ProcessGroupMPI", "ProcessGroupUCC"):
        setattr(c10d, name, stand)
        setattr(dist, name, stand)
    for name in ("nccl", "gloo", "mpi"):
        yes = lambda: True  # noqa: E731
        setattr(c10d, f"is_{name}_available", yes)
        setattr(dist, f"is_{name}_available", yes)
    start = c10d.init_process_group

    @functools.wraps(start)
    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, **rest):
        session = current()
        if session is None:
            return start(backend, init_method, timeout, world_size, rank, store, **rest)
        if not hasattr(torch._C, "_ensureCUDADeviceGuardSet"):  # C++ code of DDP would ask the driver
            sentence = f"the tracer cannot trace programs of several ranks with PyTorch {torch.__version__}: take a later one"
            session.refuse(sentence)
            raise RuntimeError(f"allocrig trace: {sentence}")
        wanted_rank, wanted_world = rank_and_world()
        world = wanted_world or (world_size if world_size > 0 else 1)
        rank = wanted_rank if wanted_rank is not None else max(rank, 0)
        if rank >= world:
            raise ValueError(f"rank {rank} of a job with {world} ranks: give --rank below --world")
        device_id = rest.pop("device_id", None)
        rest.pop("pg_options", None)
        session.devices = max(session.devices, ranks_per_node(world))
        session.trace.header["rank"] = rank
        groups = session.groups = collectives.Groups(session, rank, ranks_per_node(world))
        _register_operators(session, groups)
        _wrapper_subclasses(current)
        start(_without_processes(backend), timeout=timeout, world_size=world, rank=rank, store=dist.HashStore(), **rest)
        if device_id is not None:
            groups.eager = True
            groups.communicator(dist.group.WORLD)

    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None):
        parent = parent_pg or c10d._get_default_group()
        ranks = dist.get_process_group_ranks(parent)
        mine = None
        for part in split_ranks:
            group = c10d.new_group([ranks[r] for r in part], timeout=timeout, group_desc=group_desc)
            if parent.rank() in part:
                mine = group
        return mine

    make_group = c10d.new_group

    @functools.wraps(make_group)
    def new_group(*args, **kwargs):
        session = current()
        groups = groups_of(session) if session is not None else None
        if groups is not None:
            kwargs.pop("device_id", None)
            kwargs.pop("pg_options", None)
            kwargs["use_local_synchronization"] = False
        group = make_group(*args, **kwargs)
        if groups is not None and groups.eager and isinstance(group, dist.ProcessGroup):
            groups.communicator(group)
        return group

    end = c10d.destroy_process_group

    @functools.wraps(end)
    def destroy_process_group(group=None):
        session = current()
        groups = groups_of(session) if session is not None else None
        if groups is not None:
            groups.destroyed(group.group_name if group is not None and group is not dist.group.WORLD else None)
        end(group)

    for module in (dist, c10d):
        module.destroy_process_group = destroy_process_group
        module.init_process_group = init_process_group
        module.new_group = new_group
        module.split_group = split_group
        module.monitored_barrier = lambda group=None, timeout=None, wait_all_ranks=False: None
    mesh = importlib.import_module("torch.distributed.device_mesh")
    if hasattr(mesh, "split_group"):  # 2.15 has taken it from distributed_c10d
        mesh.split_group = split_group


def _without_processes(backend):
    """The name of a backend, if PyTorch would make it of NCCL or Gloo; of NCCL for any other."""
    if backend is None:
        return "cpu:gloo,cuda:nccl"
    parts = [p.split(":") for p in str(backend).lower().split(",")]
    known = [":".join((*p[:-1], p[-1] if p[-1] in ("nccl", "gloo") else "nccl")) for p in parts]
    return ",".join(known)


def _register_operators(session, groups):
    """Tells the dispatch mode which functions stand in for the operators of torch.distributed."""
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    from . import collectives, values

    def of(function):
        def special(mode, func, args, kwargs):
            return function(groups, mode, func, args, kwargs)

        return special

    for name in collectives.KINDS:
        func = getattr(torch.ops.c10d, name).default
        values.SPECIAL[func] = values.ON_CPU[func] = of(collectives.c10d_operator)
    wrap = getattr(torch.ops._c10d_functional, "_wrap_tensor_autograd", None)  # 2.9 to 2.14
    if wrap is not None:
        values.SPECIAL[wrap.default] = lambda mode, func, args, kwargs: AsyncCollectiveTensor(args[0])
    for name in (*collectives.FUNCTIONAL, *(f"{n}_" for n in collectives.FUNCTIONAL), "wait_tensor"):
        packet = getattr(torch.ops._c10d_functional, name, None)
        if packet is not None:
            special = of(collectives.functional_operator)
            values.SPECIAL[packet.default] = values.ON_CPU[packet.default] = special


def _group_object(current, dist, c10d):
    """Coalescing: the operations between start and end are one, with one handle."""
    from . import collectives

    group_class = dist.ProcessGroup

    def start(self, device=None):
        groups = groups_of(current())
        groups.batched[self.group_name] = collectives.TracedWork([], ledger=groups.session.ledger)

    def end(self, device=None):
        groups = groups_of(current())
        return groups.batched.pop(self.group_name)

    group_class._start_coalescing = start
    group_class._end_coalescing = end


def _reductions(current, dist, c10d):
    """Remembers the operator of a reduction, which C++ does not show to Python."""
    names = {}
    for name in ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        names[str(getattr(dist.ReduceOp, name, name))] = name

    def wrap(function, at):
        @functools.wraps(function)
        def remembering(*args, **kwargs):
            session = current()
            groups = groups_of(session) if session is not None else None
            if groups is None:
                return function(*args, **kwargs)
            op = kwargs.get("op", args[at] if len(args) > at else dist.ReduceOp.SUM)
            groups.redop, before = names.get(str(op), "SUM"), groups.redop
            try:
                return function(*args, **kwargs)
            finally:
                groups.redop = before

        return remembering

    for name, at in (("all_reduce", 1), ("reduce", 2), ("reduce_scatter_tensor", 2), ("reduce_scatter", 2)):
        wrapped = wrap(getattr(c10d, name), at)
        for module in (dist, c10d):
            setattr(module, name, wrapped)


def _verify_parameters(group, parameters, logger=None):
    """reducer.cpp, verify_params_across_processes: counts and shapes of parameters, compared through small tensors."""
    device, ranks = parameters[0].device, group.size()
    count = torch.tensor([len(parameters)], dtype=torch.int64).to(device)
    counts = [torch.empty_like(count) for _ in range(ranks)]
    group.allgather([counts], [count]).wait()
    shapes = torch.zeros(sum(2 * p.dim() for p in parameters), dtype=torch.int64).to(device)
    group.broadcast([shapes]).wait()


def _wrapper(cls, shape, stride, dtype, device, requires_grad):
    """A tensor that wraps one on the card. It chooses its operators as a card does: some are composite elsewhere."""
    with torch._C._DisableTorchDispatch():
        elem = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        return torch.Tensor._make_subclass(cls, elem, requires_grad, device_for_backend_keys=device)


def _wrapper_subclasses(current):
    """Tensors that wrap a tensor (DTensor, results that are waited for at first use) tell its device, and have the
    dispatch keys of the card. To C++ they are on device meta, as the tensors in them: see fake.py."""
    if getattr(_wrapper_subclasses, "done", False):
        return
    _wrapper_subclasses.done = True
    from torch.distributed._functional_collectives import AsyncCollectiveTensor
    from torch.distributed.tensor import DTensor, _sharding_prop

    def tell(cls, inner):
        cls.device = property(lambda self: inner(self).device)
        cls.is_cuda = property(lambda self: inner(self).is_cuda)
        cls.is_cpu = property(lambda self: inner(self).is_cpu)
        cls.is_meta = property(lambda self: inner(self).is_meta)
        cls.get_device = lambda self: inner(self).get_device()

    _sharding_prop.FakeTensorMode = lambda: current().mode.fake  # it shares our stand-in of the card's tensors
    tell(DTensor, lambda self: self._local_tensor)
    tell(AsyncCollectiveTensor, lambda self: self.elem)

    make = DTensor.__new__

    def distributed(cls, local, spec, *, requires_grad):
        if not local.is_cuda:
            return make(cls, local, spec, requires_grad=requires_grad)
        out = _wrapper(cls, spec.shape, spec.stride, local.dtype, local.device, requires_grad)
        out._local_tensor, out._spec = local, spec
        return out

    def awaited(cls, elem):
        out = _wrapper(cls, elem.size(), elem.stride(), elem.dtype, elem.device, elem.requires_grad)
        out.elem, out.completed = elem, False
        return out

    DTensor.__new__ = staticmethod(distributed)
    AsyncCollectiveTensor.__new__ = staticmethod(awaited)
