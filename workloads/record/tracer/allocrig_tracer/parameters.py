"""Parameters, modules and backward: what the tracer must know about Python's part of PyTorch."""

import functools
import importlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nested._internal import nested_tensor

from . import lbfgs, values

LEGACY = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64,
    "Bool": torch.bool,
}  # fmt: skip


def install(current):
    """Installs all hooks, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    _parameters(current)
    _modules(current)
    _steps(current)
    _backward(current)
    _data_access(current)
    lbfgs.install(current)


def _parameters(current):
    """A parameter on the CPU has no data either, so that `.to("cuda")` keeps its identity, as PyTorch does."""
    make = torch.nn.Parameter.__new__

    def new(cls, data=None, requires_grad=True):
        session = current()
        plain = data is not None and type(data) in (torch.Tensor, torch.nn.Parameter)
        if session is not None and session.active() and plain and data.device.type == "cpu":
            data = session.mode.hollow(data)
        if isinstance(data, FakeTensor):
            out = data.detach().requires_grad_(requires_grad)
            out._is_param = True
            return out
        return make(cls, data, requires_grad)

    torch.nn.Parameter.__new__ = new
    for kind in (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer):
        kind.__new__ = _uninitialized(kind.__new__, current)
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def apply_fake(self, fn, recurse=True):
        if current() is None:
            return apply(self, fn, recurse)
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is None:
                continue
            with torch.no_grad():
                applied = fn(param)
            if isinstance(param, FakeTensor) and isinstance(applied, FakeTensor):
                grad = param.grad
                if applied is not param:
                    param.grad = None
                    param.data = applied
                if grad is not None:
                    with torch.no_grad():
                        param.grad = fn(grad)
            elif applied is not param:
                self._parameters[key] = torch.nn.Parameter(applied, param.requires_grad)
        for key, buffer in self._buffers.items():
            if torch.nn.parameter.is_lazy(buffer):
                buffer.data = fn(buffer)
            elif buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    torch.nn.Module._apply = apply_fake
    get = torch.Tensor.data

    def set_data(self, value):
        if isinstance(self, FakeTensor) and not isinstance(value, FakeTensor):
            value, real = current().mode.hollow(value, value.device), value
            values.set_value(value, real if values.keeps(real) else None)
        get.__set__(self, value)
        if isinstance(self, FakeTensor) and isinstance(value, FakeTensor):
            self.fake_device = value.fake_device
            values.share_value(self, values.value_of(value))

    FakeTensor.data = property(lambda self: get.__get__(self), set_data)


def _uninitialized(make, current):
    """Parameters of lazy modules have no data from the beginning."""

    def new(cls, requires_grad=True, device=None, dtype=None, **rest):
        session = current()
        if session is None or not session.active():
            return make(cls, requires_grad, device, dtype, **rest)
        data = torch.empty(0, device=device, dtype=dtype)
        grad = requires_grad and issubclass(cls, torch.nn.Parameter)
        return torch.Tensor._make_subclass(cls, data if isinstance(data, FakeTensor) else session.mode.hollow(data), grad)

    return new


def _modules(current):
    """Keeps the path of the module whose forward runs."""
    names = {}

    def before(module, inputs):
        session = current()
        if session is None:
            return
        local = session.local
        stack = getattr(local, "modules", None)
        if stack is None:
            stack = local.modules = []
        name = names.get(id(module))
        if not stack or name is None:
            for path, child in module.named_modules():
                parts = [part for part in path.split(".") if part not in ("", "_orig_mod")]  # of torch.compile
                names[id(child)] = ".".join(parts) or type(getattr(child, "_orig_mod", child)).__name__
            name = names[id(module)]
        stack.append(name)

    def after(module, inputs, output):
        session = current()
        stack = getattr(session.local, "modules", None) if session is not None else None
        if stack:
            stack.pop()

    torch.nn.modules.module.register_module_forward_pre_hook(torch._dynamo.disable(before))
    torch.nn.modules.module.register_module_forward_hook(torch._dynamo.disable(after), always_call=True)


def _steps(current):
    """A step ends when the program's first optimizer has stepped; synchronize ends one in a program without."""

    def stepped(optimizer, args, kwargs):
        session = current()
        if session is None or not session.active():
            return
        if session.in_step_of is None:
            session.in_step_of = id(optimizer)
        if session.in_step_of == id(optimizer):
            session.step()

    optimizer = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook(torch._dynamo.disable(stepped))
    made = torch.optim.Optimizer.__init__

    @functools.wraps(made)
    def init(self, *args, **kwargs):
        if current() is not None:
            current().has_optimizer = True
        made(self, *args, **kwargs)

    torch.optim.Optimizer.__init__ = init
    for module in (torch.utils._foreach_utils, optimizer):
        types = getattr(module, "_foreach_supported_types", None)
        if types is not None and FakeTensor not in types:
            types.append(FakeTensor)
    group = torch.utils._foreach_utils._group_tensors_by_device_and_dtype

    def grouped(tensorlists, with_indices=False):
        out = group(tensorlists, with_indices)
        session = current()
        if session is None:
            return out
        fixed = {}
        for (device, dtype), entry in out.items():
            first = next((t for t in entry[0][0] if t is not None), None)
            fixed[(first.device if first is not None else device, dtype)] = entry
        return fixed

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("_group_tensors_by_device_and_dtype") is group:
            module._group_tensors_by_device_and_dtype = grouped


def _backward(current):
    """Backward of CUDA tensors runs in a thread of its own on a card, with its own cuBLAS handle."""
    engine = torch.autograd.graph._engine_run_backward

    def run(*args, **kwargs):
        session = current()
        if session is None:
            return engine(*args, **kwargs)
        if not session.backward_depth:
            session.stream_of_backward = session.stream_now()
        session.backward_depth += 1
        start, found = torch.autograd._get_sequence_nr(), None
        try:
            found = engine(*args, **kwargs)
            return found
        finally:
            session.backward_depth -= 1
            if not session.backward_depth:
                session.backward_thread.passed(start, args[0], found)
            if not session.backward_depth and getattr(session, "groups", None) is not None:
                session.groups.rejoin()
            if not session.backward_depth and len(session.mode.nodes) > 1 << 18:
                session.mode.nodes.clear()

    for module in (torch.autograd, torch.autograd.graph, torch._tensor):
        if hasattr(module, "_engine_run_backward"):
            module._engine_run_backward = run


def _data_access(current):
    """Python code that reads data of a tensor gets the kept value, zeros, or an address of its own."""
    data_ptr = torch.Tensor.data_ptr
    numpy = torch.Tensor.numpy
    storage_ptr = torch.UntypedStorage.data_ptr
    pack = torch.Tensor.__dlpack__
    resize = torch.UntypedStorage.resize_

    def address(self):
        if isinstance(self, FakeTensor):
            return self.untyped_storage()._cdata + self.storage_offset() * self.element_size()
        return data_ptr(self)

    def to_numpy(self, *, force=False):
        if not isinstance(self, FakeTensor):
            return numpy(self, force=force)
        if self.fake_device.type == "cuda" and not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        session = current()
        value = values.value_of(self)
        with session.paused():
            return numpy(value.clone() if value is not None else torch.zeros(tuple(self.shape), dtype=self.dtype))

    def dlpack(self, *args, **kwargs):
        if isinstance(self, FakeTensor):
            sentence = "the program gives a tensor to another library (DLPack), which needs its data"
            current().refuse(sentence)
            raise BufferError(f"allocrig trace: {sentence}, and without a card there is none")
        return pack(self, *args, **kwargs)

    def storage_address(self):
        return self._cdata if self.device.type == "meta" else storage_ptr(self)

    def resized(self, size):
        out = resize(self, size)
        session = current()
        if session is not None and self.device.type == "meta" and session.active():
            block = session.ledger.storages.get(self._cdata)
            if block is not None or self._cdata in session.emptied:
                device = block.device if block is not None else session.emptied.pop(self._cdata)
                if size == 0:
                    session.emptied[self._cdata] = device
                session.storage_resized(self, device)
        return out

    new = torch.Tensor.new_tensor
    kind = torch.Tensor.type

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **rest):
        if not self.is_cuda:
            return new(self, data, dtype=dtype, device=device, requires_grad=requires_grad, **rest)
        return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    def type_of(self, dtype=None, non_blocking=False, **rest):
        """`x.type()` is the name of a legacy class, and `x.type(name)` converts to it."""
        if dtype is None:
            name = kind(self)
            return name.replace("torch.meta.", "torch.cuda." if self.is_cuda else "torch.")
        if isinstance(dtype, torch.dtype):
            return self.to(dtype=dtype, non_blocking=non_blocking)
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        found = LEGACY[name.rpartition(".")[2].removesuffix("Tensor")]
        return self.to(device="cuda" if ".cuda." in name else "cpu", dtype=found, non_blocking=non_blocking)

    def formatted(self, spec):
        if self.dim() == 0 and spec:
            return self.item().__format__(spec)
        return object.__format__(self, "") if not spec else str(self)

    torch.Tensor.data_ptr = address
    torch.Tensor.new_tensor = new_tensor
    FakeTensor.type = type_of
    torch.Tensor.numpy = to_numpy
    torch.Tensor.__array__ = lambda self, dtype=None: (
        self.detach().numpy() if dtype is None else self.detach().numpy().astype(dtype, copy=False)
    )
    torch.UntypedStorage.data_ptr = storage_address
    torch.UntypedStorage.resize_ = resized
    FakeTensor.__format__ = formatted
    torch.Tensor.__dlpack__ = dlpack
    FakeTensor.__deepcopy__ = _deepcopy
    own = FakeTensor.get_nested_int

    def get_nested_int(self, *, coeff=1):
        return nested_int(self, coeff) if hasattr(self.fake_mode, "session") else own(self, coeff=coeff)

    FakeTensor.get_nested_int = get_nested_int


def nested_int(self, coeff=1):
    """The symbol of a ragged dimension, one for each tensor of offsets: as for real tensors."""
    if "_ragged" not in self.__dict__:
        self._ragged = nested_tensor._tensor_id_counter
        nested_tensor._tensor_id_counter += 1
    return torch._C._get_nested_int(self._ragged, coeff)


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    with torch.no_grad():
        out = self.detach().clone()
        if getattr(self, "_is_param", False):
            out._is_param = True
        else:
            self.new_empty([])  # a tensor of one element, which then gets the copied memory
    out.requires_grad_(self.requires_grad)
    if self.grad is not None:
        out.grad = _deepcopy(self.grad, memo)
    memo[id(self)] = out
    return out
