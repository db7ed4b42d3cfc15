"""Stand-ins for torch.cuda: a card that has memory, streams and statistics, and no driver."""

import functools
import importlib
import re
import sys
from collections import OrderedDict
from types import SimpleNamespace

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import allocator, streams
from .release import cudnn_version

MULTIPROCESSORS = (  # as the cards' data sheets say
    ("H100 PCIe", 114), ("GH200", 132), ("H100", 132), ("H200", 132), ("A100", 108), ("L40S", 142), ("L40", 142),
    ("L4", 58), ("3090", 82), ("4090", 128), ("5090", 170), ("B200", 148), ("GB10", 48), ("MI300X", 304),
    ("V100", 80), ("T4", 40), ("A10G", 80), ("A10", 72),
)  # fmt: skip

L2_MIB = (
    ("H200", 60), ("H100", 50), ("GH200", 60), ("A100", 40), ("L40S", 96), ("L40", 96), ("L4", 48), ("3090", 6),
    ("4090", 72), ("5090", 96), ("B200", 126), ("GB10", 24), ("V100", 6), ("T4", 4), ("A10G", 6), ("A10", 6),
)  # fmt: skip

POOLS = ("all", "large_pool", "small_pool")
COUNTED = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
           "inactive_split_bytes", "requested_bytes")  # fmt: skip

MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}  # cudnnRNNMode_t


def multiprocessors(name, sm):
    """Multiprocessors of a card by its name; of an H100 if the name is not known."""
    return next((count for part, count in MULTIPROCESSORS if part in name), 132)


def install(current):
    """Replaces functions of torch.cuda, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    cuda = torch.cuda
    _devices(cuda, current)
    _memory(cuda, current)
    _random(cuda, current)
    _construction(current)
    streams.install(current)


def _index(current, device=None):
    """The number of a device that is given as None, a number, a name or a torch.device."""
    if device is None:
        return current().current_device().index
    if isinstance(device, int):
        return device
    return torch.device(device).index if torch.device(device).index is not None else current().current_device().index


def _devices(cuda, current):
    def properties(device=None):
        card = current().card
        major, minor = (int(n) for n in card.sm.split("."))
        l2 = next((mib for part, mib in L2_MIB if part in card.name), 50) << 20  # as the cards' data sheets say
        return SimpleNamespace(
            name=card.name, major=major, minor=minor, total_memory=card.bytes, multi_processor_count=card.sms,
            max_threads_per_multi_processor=2048, warp_size=32, regs_per_multiprocessor=65536, L2_cache_size=l2,
            shared_memory_per_block=49152, shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
            is_integrated=0, is_multi_gpu_board=0, gcnArchName="", uuid="0", clock_rate=1980000, memory_clock_rate=2619000,
            memory_bus_width=5120, max_threads_per_block=1024,
        )  # fmt: skip

    def set_device(device):
        index = _index(current, device)
        if index >= 0:
            current().local.device = index

    def exchange(device):
        old = current().current_device().index
        set_device(device)
        return old

    nothing = lambda *args, **kwargs: None  # noqa: E731
    cuda.is_available = lambda: True
    cuda.is_initialized = lambda: True
    cuda.init = cuda._lazy_init = nothing
    cuda._lazy_call = lambda call, **kwargs: None
    cuda.device_count = lambda: current().devices
    cuda.current_device = lambda: current().current_device().index
    cuda.set_device = set_device
    cuda._exchange_device = cuda._maybe_exchange_device = exchange
    cuda.get_device_properties = properties
    cuda.get_device_name = lambda device=None: current().card.name
    cuda.get_device_capability = lambda device=None: tuple(int(n) for n in current().card.sm.split("."))
    cuda.is_bf16_supported = lambda including_emulation=True: float(current().card.sm) >= 8.0
    cuda.is_tf32_supported = lambda: float(current().card.sm) >= 8.0
    cuda.get_arch_list = lambda: ["sm_" + current().card.sm.replace(".", "")]
    cuda.can_device_access_peer = lambda a, b: True
    for name in ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate"):  # of NVML
        setattr(cuda, name, lambda device=None: 0)
    cuda.ipc_collect = nothing
    cuda.get_sync_debug_mode = lambda: 0
    cuda.set_sync_debug_mode = nothing
    cuda.nvtx.range_push = cuda.nvtx.range_pop = nothing
    cuda.nvtx.mark = lambda msg: current().ledger.mark(msg)
    torch.backends.cuda.is_built = lambda: True
    torch.backends.cudnn.is_available = lambda: True
    torch.backends.cudnn.version = cudnn_version
    importlib.import_module("torch.backends.cudnn.rnn").get_cudnn_mode = MODES.__getitem__  # a build without CUDA has no numbers for them
    torch.backends.cudnn.is_acceptable = lambda tensor: tensor.is_cuda and torch.backends.cudnn.enabled
    accelerator = torch.accelerator
    accelerator.is_available = lambda: True
    accelerator.device_count = cuda.device_count
    accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
    accelerator.current_device_index = accelerator.current_device_idx = cuda.current_device
    accelerator.set_device_index = accelerator.set_device_idx = set_device
    get_default = torch._C._get_accelerator if hasattr(torch._C, "_get_accelerator") else None
    if get_default is not None:
        torch._C._get_accelerator = lambda check=None: torch.device("cuda")


def _memory(cuda, current):
    def empty_cache():
        session = current()
        if session.active():
            session.ledger.empty_cache()

    def counted(read):
        """PyTorch counts nothing if its cache is turned off."""

        def get(device=None):
            ledger, index = current().ledger, _index(current, device)
            return 0 if ledger.allocator(index).uncached else read(ledger, index)

        return get

    allocated = counted(lambda ledger, index: ledger.live[index])
    peak = counted(lambda ledger, index: ledger.peak[index])
    reserved = counted(lambda ledger, index: ledger.allocator(index).reserved)
    peak_reserved = counted(lambda ledger, index: ledger.allocator(index).peak)

    def reset(device=None):
        ledger, index = current().ledger, _index(current, device)
        ledger.peak[index] = ledger.live[index]
        ledger.allocator(index).peak = ledger.allocator(index).reserved

    def info(device=None):
        session = current()
        held = session.ledger.allocator(_index(current, device)).reserved
        return max(session.card.bytes - allocator.CONTEXT - held, 0), session.card.bytes

    def settings(conf):
        allocator.refuse_conf(conf)
        current().ledger.set_conf(conf)

    def stats(device=None):
        ledger, of = current().ledger, current().ledger.allocator(_index(current, device))
        out = {f"{name}.{pool}.{what}": 0 for name in COUNTED for pool in POOLS for what in ("current", "peak", "allocated", "freed")}
        for name in ("allocation", "active"):
            counts = {"current": len(of.sizes), "allocated": of.next, "freed": of.next - len(of.sizes)}
            out.update({f"{name}.all.{what}": 0 if of.uncached else count for what, count in counts.items()})
        for name, now, most in (
            ("allocated_bytes", allocated(device), peak(device)),
            ("active_bytes", allocated(device), peak(device)),
            ("requested_bytes", allocated(device), peak(device)),
            ("reserved_bytes", reserved(device), peak_reserved(device)),
        ):
            for pool in POOLS:
                out[f"{name}.{pool}.current"] = now if pool != "small_pool" else 0
                out[f"{name}.{pool}.peak"] = most if pool != "small_pool" else 0
        for name in ("num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"):
            out[name] = 0
        for name in ("oversize_allocations", "oversize_segments"):
            out.update({f"{name}.{what}": 0 for what in ("current", "peak", "allocated", "freed")})
        out["num_alloc_retries"], out["num_ooms"] = of.retries, ledger.raised
        return OrderedDict(sorted(out.items()))

    def fraction(fraction, device=None):
        session = current()
        limit = int(session.card.bytes * fraction)
        session.trace.header["limit"] = limit
        session.ledger.set_limit(limit)

    memory = cuda.memory
    for module in (cuda, memory):
        module.empty_cache = empty_cache
        module.memory_allocated = allocated
        module.max_memory_allocated = peak
        module.memory_reserved = module.memory_cached = reserved
        module.max_memory_reserved = module.max_memory_cached = peak_reserved
        module.reset_peak_memory_stats = reset
        module.reset_accumulated_memory_stats = module.reset_max_memory_allocated = reset
        module.reset_max_memory_cached = reset
        module.mem_get_info = info
        module.device_memory_used = lambda device=None: info(device)[1] - info(device)[0]
        module.memory_stats = stats
        module.memory_stats_as_nested_dict = lambda device=None: {}
        module.memory_summary = lambda device=None, abbreviated=False: "no memory summary without a GPU\n"
        module.memory_snapshot = lambda *args, **kwargs: no_snapshot() or []
        module.set_per_process_memory_fraction = fraction
        module.get_per_process_memory_fraction = lambda device=None: 1.0
        module.host_memory_stats = lambda: OrderedDict()
        module.list_gpu_processes = lambda device=None: ""

    @functools.cache
    def no_snapshot():
        print("allocrig trace: the program takes a memory snapshot, and there is nothing to snapshot without a card:\n"
              "  the trace has the requests, and `allocrig run -p torch -w TRACE --snapshot FILE` writes one", file=sys.stderr)  # fmt: skip

    def snapshot(*args, **kwargs):
        no_snapshot()
        return {"segments": [], "device_traces": [[]]}

    memory._set_allocator_settings = torch._C._accelerator_setAllocatorSettings = settings
    memory._record_memory_history = lambda *args, **kwargs: None
    memory._snapshot = snapshot
    memory._dump_snapshot = lambda *args, **kwargs: no_snapshot()
    cuda._record_memory_history = memory._record_memory_history
    accelerator = torch.accelerator
    for name, function in (
        ("empty_cache", empty_cache), ("memory_stats", stats), ("memory_allocated", allocated),
        ("max_memory_allocated", peak), ("memory_reserved", reserved), ("max_memory_reserved", peak_reserved),
        ("reset_peak_memory_stats", reset), ("get_memory_info", info),
    ):  # fmt: skip
        for module in (accelerator, getattr(accelerator, "memory", None)):
            if module is not None and hasattr(module, name):
                setattr(module, name, function)
    torch._C._cuda_clearCublasWorkspaces = lambda: current().ledger.drop(lambda key: key[0] == "cublas")


def _random(cuda, current):
    """The state of a card's random generator is 16 bytes on the host; nothing draws from it."""
    state = lambda device="cuda": torch.zeros(16, dtype=torch.uint8, device="cpu")  # noqa: E731
    nothing = lambda *args, **kwargs: None  # noqa: E731
    for module in (cuda, cuda.random):
        module.get_rng_state = state
        module.get_rng_state_all = lambda: [state() for _ in range(current().devices)]
        module.set_rng_state = module.set_rng_state_all = nothing
        module.manual_seed = module.manual_seed_all = nothing
        module.seed = module.seed_all = nothing
        module.initial_seed = lambda: current().seed


class _Generators(type(torch._C.Generator)):
    """isinstance(g, torch.Generator) holds for real generators, which stand for those of the card as well."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_Generators):
    """A generator of any device is one of the CPU here."""

    def __new__(cls, device="cpu"):
        return torch._C.Generator.__new__(torch._C.Generator)


class CardGenerator(torch._C.Generator):
    """A card's own generator, which compiled programs name and copy: its state takes nothing of the card."""

    def __new__(cls, index):
        made = super().__new__(cls)
        made.index = index
        return made

    device = property(lambda self: torch.device("cuda", self.index))

    def clone_state(self):
        return CardGenerator(self.index)

    def manual_seed(self, seed):
        return self

    def graphsafe_get_state(self):
        return self

    def graphsafe_set_state(self, state):
        return self


MAKERS = ("empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "empty_strided", "eye")


def default_device():
    """The device of `with torch.device(...)` or of torch.set_default_device; None without one."""
    for mode in reversed(torch.overrides._get_current_function_mode_stack()):
        if isinstance(mode, torch.utils._device.DeviceContext):
            return mode.device
    return None


def _meta_context(current):
    """In `with torch.device("meta")` the program itself asks for device meta."""
    context = torch.utils._device.DeviceContext
    plain = context.__torch_function__

    def function(self, func, types, args=(), kwargs=None):
        session = current()
        makes = func in torch.utils._device._device_constructors() and (kwargs or {}).get("device") is None
        if session is None or self.device.type != "meta" or not makes:
            return plain(self, func, types, args, kwargs)
        session.local.meta = getattr(session.local, "meta", 0) + 1
        try:
            return plain(self, func, types, args, kwargs)
        finally:
            session.local.meta -= 1

    context.__torch_function__ = function


def _construction(current):
    """Remembers that the program itself asked for device meta, which C++ code says in place of cuda."""

    torch.utils._device._device_constructors()  # keeps PyTorch's own functions, also after they are replaced here

    def wrap(make):
        def made(*args, **kwargs):
            device = kwargs.get("device")
            session = current()
            if session is None or device is None or torch.device(device).type != "meta":
                return make(*args, **kwargs)
            session.local.meta = getattr(session.local, "meta", 0) + 1
            try:
                return make(*args, **kwargs)
            finally:
                session.local.meta -= 1

        made.__name__ = make.__name__
        made.__doc__ = make.__doc__
        made.__wrapped__ = make
        return made

    for name in MAKERS:
        setattr(torch, name, wrap(getattr(torch, name)))
    torch.tensor = _tensor(torch.tensor, current)
    for name in ("as_tensor", "asarray"):
        setattr(torch, name, _as_tensor(getattr(torch, name), current))
    torch.Generator = Generator
    _meta_context(current)
    for name in MAKERS:  # TorchScript takes them for the operators
        torch.jit._builtins._register_builtin(getattr(torch, name), f"aten::{name}")


def _tensor(make, current):
    """torch.tensor(data, device=cuda): a copy of a real tensor, as on a card."""

    def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
        session = current()
        if session is None or not session.active():
            return make(data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
        if device is None:
            device = default_device()
        if isinstance(data, FakeTensor):
            out = data.detach().clone()
            if device is not None or dtype is not None:
                out = out.to(device=device or out.device, dtype=dtype or out.dtype)
            return out.requires_grad_(requires_grad)
        if device is None or torch.device(device).type != "cuda":
            out = make(data, dtype=dtype, device=device, requires_grad=requires_grad)
            return out.pin_memory() if pin_memory else out
        with session.paused():
            real = make(_plain(data), dtype=dtype, device="cpu")
        return real.to(device).requires_grad_(requires_grad)

    return tensor


def _as_tensor(make, current):
    """torch.as_tensor and torch.asarray with device=cuda: a tensor that is there already is not copied."""

    def as_tensor(data, dtype=None, device=None, **rest):
        session = current()
        chosen = default_device() if device is None and not isinstance(data, torch.Tensor) else device
        fake = isinstance(data, FakeTensor)
        if session is None or not session.active() or not fake and (chosen is None or torch.device(chosen).type != "cuda"):
            return make(data, dtype=dtype, device=device, **rest)
        copy, grad = bool(rest.get("copy")), rest.get("requires_grad")
        if not isinstance(data, torch.Tensor):
            with session.paused():
                data, copy = make(_plain(data), dtype=dtype, device="cpu"), False
        out = data.to(device=chosen or data.device, dtype=dtype or data.dtype, copy=copy)
        return out if grad is None or grad == out.requires_grad else out.detach().requires_grad_(grad)

    return as_tensor


def _plain(data):
    """Data with the fake tensors in it replaced by numbers."""
    if isinstance(data, FakeTensor):
        return data.item() if data.dim() == 0 else data.tolist()
    if isinstance(data, (list, tuple)) and re.search("FakeTensor", " ".join(type(d).__name__ for d in data)):
        return [_plain(d) for d in data]
    return data
