"""Runs a program on CUDA tensors that have shapes and no data, on a machine without a GPU.

A dispatch mode sees every ATen operator of the program. Operators on CUDA tensors run on PyTorch's own FakeTensor:
Python code of the program sees device `cuda`, C++ code sees device `meta`, because autograd asks a CUDA tensor for its
driver. The places where C++ would have decided by `is_cuda` are decided in branches.py. Tensors on the CPU are real,
except large floating-point ones (parameters, inputs), which have no data either: a model of 30 GB fits in a laptop.
"""

import functools
import os
import sys
import threading

import torch
import torch._dynamo  # noqa: F401  PyTorch imports it on first use; inside the mode that import would fail
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

from . import cudnn_meta, host_random, kernel_times, kernels, sparse, values
from . import shapes as shapes_of
from .kernels_shape import dense as is_dense
from .order import number_of
from .replays import BASE, BETWEEN, Replays

aten = torch.ops.aten
PLAIN = (torch.Tensor, torch.nn.Parameter)
HOLLOW_ELEMENTS = 1 << 16  # a floating-point tensor on the CPU with at least so many elements has no data
LIBRARY = tuple(os.path.dirname(os.path.dirname(os.path.abspath(m.__file__))) for m in (torch, os)) + (
    os.path.dirname(os.path.abspath(__file__)),
    "<",
)


@functools.cache
def _mixed(cls):
    """A class of tensors that have the methods of `cls` and are fake."""
    own = {"_is_param": issubclass(cls, torch.nn.Parameter)}
    if issubclass(cls, torch.nn.parameter.UninitializedTensorMixin):  # of a lazy module
        own.update(cls_to_become=FakeTensor, shape=torch.Tensor.shape, __torch_function__=disabled_torch_function)
    return type(cls.__name__, (cls, FakeTensor), own)


disabled_torch_function = torch._C._disabled_torch_function_impl


def patch_fake_tensor():
    """Makes FakeTensor a stand-in of a CUDA tensor that needs no driver."""
    make_subclass = torch.Tensor._make_subclass

    def without_device(cls, elem, requires_grad=False, *, dispatch_device=False, **rest):
        if issubclass(cls, FakeTensor):
            dispatch_device = False
        elif isinstance(elem, FakeTensor) and not rest:
            out = elem.detach().requires_grad_(requires_grad)
            out.__class__ = _mixed(cls)  # such as bitsandbytes' parameters: their methods, and no data
            out._is_param = issubclass(cls, torch.nn.Parameter)
            return out
        return make_subclass(cls, elem, requires_grad, dispatch_device=dispatch_device, **rest)

    torch.Tensor._make_subclass = without_device
    torch.Tensor._make_wrapper_subclass = _wrapper_without_device(torch.Tensor._make_wrapper_subclass)
    fake_tensor.init_gpu_context = lambda device: None
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):  # 2.9 and later
        torch._C._ensureCUDADeviceGuardSet()

    def kind(name):
        return property(lambda self: not self.fake_mode.in_kernel_invocation and self.fake_device.type == name)

    FakeTensor.is_cuda = kind("cuda")
    FakeTensor.is_cpu = kind("cpu")
    FakeTensor.is_meta = property(lambda self: self.fake_mode.in_kernel_invocation or self.fake_device.type == "meta")
    FakeTensor.get_device = lambda self: self.fake_device.index if self.fake_device.type == "cuda" else -1


def _wrapper_without_device(make):
    """A subclass that wraps tensors of the card, such as jagged ones: C++ takes it for `meta` as well."""

    def make_wrapper(cls, *args, **kwargs):
        found = [d for d in (*args, kwargs.get("device")) if isinstance(d, (torch.device, str)) and "cuda" in str(d)]
        if not found:
            return make(cls, *args, **kwargs)
        args = [torch.device("meta") if isinstance(a, (torch.device, str)) and a == found[0] else a for a in args]
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        out = make(cls, *args, **kwargs)
        _tell_device(cls)
        out._card_device = torch.device(found[0])
        return out

    return make_wrapper


@functools.cache
def _tell_device(cls):
    """The instances of a class tell the device of the card, if they were made for one."""

    def tell(name, of_card):
        plain = getattr(cls, name)

        def get(self):
            device = self.__dict__.get("_card_device")
            return plain.__get__(self) if device is None else of_card(device)

        setattr(cls, name, property(get))

    tell("device", lambda device: device)
    tell("is_cuda", lambda device: True)
    tell("is_meta", lambda device: False)


def is_installed(path):
    return "site-packages" in path or "dist-packages" in path


def package_of(frame):
    """The file of the package that code belongs to: some write code to temporary files, as torch_geometric does."""
    return getattr(sys.modules.get(frame.f_globals.get("__name__", "").partition(".")[0]), "__file__", None) or ""


def where_in_program():
    """FILE:LINE of the innermost frame that is neither Python's, PyTorch's nor an installed package's."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not (name.startswith(LIBRARY) or is_installed(name) or is_installed(package_of(frame))):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def references(tensor):
    """References to a tensor's storage and to the tensor, as far as this release of PyTorch tells them."""
    storage = getattr(torch._C, "_storage_Use_Count", lambda address: 0)(tensor.untyped_storage()._cdata)
    return storage, tensor._use_count() if hasattr(tensor, "_use_count") else 0


def called_by_engine():
    """Whether autograd's own C++ code called the operator that runs now, and no Python code between."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_name
        if name == "_engine_run_backward":
            return True
        if name not in ("inner", "_fn", "__torch_dispatch__", "on_card", "record", "overwrites", "indexing"):
            return False
        frame = frame.f_back
    return False


@functools.cache
def is_composite(func):
    """Whether an operator only calls others on a card too: some, as silu_backward, have a kernel of their own there."""
    if func.name() == "aten::_fused_rms_norm":  # a build without CUDA does not know its kernel
        return False
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has("CompositeImplicitAutograd") and not has("CUDA") and not has("CPU")


def tensors_in(args, kwargs):
    """All tensors among the arguments, in order."""
    found = []
    for value in args if not kwargs else (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(v for v in value if isinstance(v, torch.Tensor))
    return found


def tensors_out(out):
    """All tensors of a result, in order."""
    if isinstance(out, torch.Tensor):
        return [out]
    if isinstance(out, (list, tuple)):
        return [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
    return []


class Context:
    """What a kernel's own memory depends on besides its arguments: see kernels.plan."""

    def __init__(self, session):
        self.session = session
        self.sm = session.card.sm
        self.sms = session.card.sms
        self.card_bytes = session.card.bytes
        self.torch_version = torch.__version__
        self.thread = "main"
        self.stream = 0
        self.device = 0

    benchmark = property(lambda self: torch.backends.cudnn.benchmark)
    deterministic = property(lambda self: torch.backends.cudnn.deterministic)
    deterministic_algorithms = property(lambda self: torch.are_deterministic_algorithms_enabled())
    allow_tf32 = property(lambda self: torch.backends.cuda.matmul.allow_tf32)


IN_PLACE = {  # an operator of autograd -> what it is on a card, where the first argument is overwritten
    aten.add.Tensor: aten.add_.Tensor,
    aten.index_put.default: aten._index_put_impl_.default,
    aten.scatter.src: aten.scatter_.src,
    aten.scatter_add.default: aten.scatter_add_.default,
    aten.masked_scatter.default: aten.masked_scatter_.default,
    aten.scatter.value: aten.scatter_.value,
    aten.masked_fill.Scalar: aten.masked_fill_.Scalar,
    aten.masked_fill.Tensor: aten.masked_fill_.Tensor,
    aten.index_add.default: aten.index_add_.default,
    aten.index_fill.int_Scalar: aten.index_fill_.int_Scalar,
}


ON_HOST = {aten._scaled_dot_product_efficient_attention.default: (2, 3)}  # outputs: seed and offset of its dropout


OF_LOGITS, OF_LARGEST = ("BinaryCrossEntropyWithLogits",), ("MaxBackward1", "MinBackward1")
FORMULA = {  # what derivatives do in place, but not for subclasses (Loss.cpp; evenly_distribute_backward in FunctionsManual.cpp)
    aten.sub.Tensor: (aten.sub_.Tensor, OF_LOGITS),
    aten.mul.Tensor: (aten.mul_.Tensor, OF_LOGITS),
    aten.div.Tensor: (aten.div_.Tensor, OF_LOGITS),
    aten.div.Scalar: (aten.div_.Scalar, OF_LOGITS),
    aten.logical_and.default: (aten.logical_and_.default, OF_LARGEST),
}


def in_formula(func, target, unique):
    """Whether `target` is what the derivative has made, and nothing else refers to."""
    node = torch._C._current_autograd_node()
    return (
        node is not None
        and node.name().startswith(FORMULA[func][1])
        and isinstance(target, FakeTensor)
        and target.grad_fn is None
        and unique is not None
        and references(target)[0] <= unique[0]
    )


OUT_OF_PLACE = ("Scatter", "MaskedFill", "MaskedScatter", "IndexFill", "IndexCopy", "IndexPut")


def out_of_place():
    """Derivatives that make their results anew for any kind of tensor, by the names of their nodes."""
    node = torch._C._current_autograd_node()
    return node is not None and node.name().startswith(OUT_OF_PLACE)


def own_terms():
    """The number of the node that runs, if its formula adds terms that it has made, out of place, else 0: derivatives
    of derivatives, as _convolution_double_backward, and norms in a graph of gradients (FunctionsManual.cpp)."""
    node = torch._C._current_autograd_node()
    name = node.name() if node is not None else ""
    adds = "BackwardBackward" in name or name.startswith(("NativeGroup", "NativeLayer"))
    return 1 + number_of(node) if adds else 0


class CardFakeMode(FakeTensorMode):
    """PyTorch's FakeTensorMode, for tensors that C++ takes for `meta`: where C++ asks for meta, it means the card."""

    def __init__(self, session):
        self.local = threading.local()
        super().__init__(allow_non_fake_inputs=True)
        self.session = session

    def _of_thread(name, start):  # noqa: N805  PyTorch's mode belongs to one thread, this one to all
        def get(self):
            if name not in self.local.__dict__:
                self.local.__dict__[name] = start()
            return self.local.__dict__[name]

        return property(get, lambda self, value: self.local.__dict__.__setitem__(name, value))

    in_kernel_invocation = _of_thread("in_kernel_invocation", bool)
    enter_stack = _of_thread("enter_stack", list)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        device = kwargs.get("device") if kwargs else None
        if device is not None and device.type == "meta" and not self.in_kernel_invocation:
            fakes = [t for t in tensors_in(args, {}) if isinstance(t, FakeTensor)]
            if fakes:
                device = fakes[0].fake_device
            elif func is aten.scalar_tensor.default:
                device = torch.device("cpu")  # a number among tensors of any device
            else:
                device = self.session.current_device()
            kwargs = {**kwargs, "device": device}
        return super().__torch_dispatch__(func, types, args, kwargs)


class CardMode(TorchDispatchMode):
    """The dispatch mode: decides for each operator whether it runs on real or on fake tensors, and records it."""

    def __init__(self, session):
        super().__init__()
        self.session = session
        self.terms = set()  # see own_terms
        self.ledger = session.ledger
        self.fake = CardFakeMode(session)
        self.context = Context(session)
        self.nodes = {}  # autograd sequence number -> (module, stream, place) of the forward operator
        self.unique = (2, 4)  # references to a gradient that only autograd holds: learn_references counts them
        self.replays = Replays()
        self.outside = {}  # operator -> [count, bytes of outputs] of kernels that kernels.py does not know

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def hollow(self, tensor, device="cpu"):
        """A fake tensor of the same shape, strides and type on a device; not yet in the ledger."""
        with torch._C._DisableTorchDispatch():
            elem = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return FakeTensor(self.fake, elem, torch.device(device))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.session.active() or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
            return func(*args, **kwargs)  # under a fake mode PyTorch only asks for shapes
        if any(t is not FakeTensor and t not in PLAIN for t in types):
            self.session.local.wrapped = func
            return NotImplemented  # a subclass such as DTensor: its own code runs operators on the tensors in it
        if is_composite(func):
            with self:  # C++'s own kernel: PyTorch has decompositions in Python for some, which a card does not run
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        tensors = tensors_in(args, kwargs)
        fakes = [t for t in tensors if isinstance(t, FakeTensor)]
        if kwargs.pop("pin_memory", None):
            return self.pinned(self.__torch_dispatch__(func, types, args, kwargs))
        device = kwargs.get("device")
        if device is not None and device.type == "meta" and not self.session.meta_wanted(tensors):
            device = fakes[0].fake_device if fakes else self.session.current_device()
            if func is aten.scalar_tensor.default and getattr(self.session.local, "assigns", False):
                device = torch.device("cpu")
            kwargs["device"] = device
        if not fakes and (device is None or device.type != "cuda"):
            return self.on_cpu(func, args, kwargs, tensors)
        if device is not None and device.type == "cuda" and device.index is None:
            kwargs["device"] = self.session.current_device()
        generator = kwargs.get("generator")
        if generator is not None:
            kwargs["generator"] = None
        if fakes and fakes[0].fake_device.type == "cpu" and args and args[0] is fakes[0]:
            contiguous = fakes[0].is_contiguous()
            host_random.skip(self.session, func, fakes[0].shape, fakes[0].dtype, generator, contiguous)
        return self.on_card(func, args, kwargs, tensors, fakes)

    def on_cpu(self, func, args, kwargs, tensors):
        """An operator without fake tensors."""
        if func in values.ON_CPU:
            return values.ON_CPU[func](self, func, args, kwargs)
        out = self.hollow_or_real(func, args, kwargs, tensors)
        self.session.host_ns += kernel_times.host_nanoseconds(func, out)
        return out

    def hollow_or_real(self, func, args, kwargs, tensors):
        """Large floating-point tensors on the CPU that an operator makes from nothing get no data."""
        if not tensors and func._schema.returns and func not in values.NEVER_HOLLOW:
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            size = args[0] if args and isinstance(args[0], (list, tuple, torch.Size)) else ()
            elements = 1
            for n in size:
                elements *= n
            cpu = kwargs.get("device") is None or kwargs["device"].type == "cpu"
            if dtype.is_floating_point and elements >= HOLLOW_ELEMENTS and cpu:
                sample = values.host_sample(self, func, args, kwargs, elements)
                if sample is not None:
                    return sample
                host_random.skip(self.session, func, size, dtype, kwargs.get("generator"))
                if "generator" in kwargs:
                    kwargs["generator"] = None
                with self.fake:
                    return func(*args, **kwargs)
        return func(*args, **kwargs)

    def on_card(self, func, args, kwargs, tensors, fakes):
        """An operator on CUDA tensors, or one that makes them."""
        view = values.is_view(func)
        if self.replays.places and self.session.in_backward():
            node = torch._C._current_autograd_node()
            place = self.replays.places.get(number_of(node)) if node is not None else None
            if place == BETWEEN or view and place == BASE:
                return self.gradient_by_strides(func, args, kwargs, place)
        self.replays.before(func, args)
        if sparse.applies(func, fakes) or sparse.leaves_host(func, args, kwargs):
            out = sparse.run(self, func, args, kwargs)
            if out is not None:
                return out
        if func is aten._embedding_bag_backward.default and args[9]:
            return sparse.bag_backward(self, args)
        special = values.SPECIAL.get(func) or values.BY_NAME.get(func.name())
        if special is not None:
            out = special(self, func, args, kwargs)
            if out is not values.ORDINARY:
                return out
        shapes = args, kwargs
        if tensors and not fakes:  # FakeTensorMode would compute on real tensors alone
            shapes = tree_map_only(torch.Tensor, self.hollow, (args, kwargs))
        out = shapes_of.run(self, func, *shapes, fakes) if fakes else None
        if out is None:
            try:
                with self.fake:
                    out = func(*shapes[0], **shapes[1])
                out = cudnn_meta.of_single_pixels(self.fake, func, fakes, args, out)
                out = cudnn_meta.of_view(self.fake, func, args, out)
            except Exception as error:  # noqa: BLE001  it is raised again unless a shape function is missing
                if shapes_of.is_missing(error) and shapes_of.calls_others(func):
                    with self:
                        return func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
                out = shapes_of.without_shape(self, func, args, error)
        outs = tensors_out(out)
        if func in ON_HOST:
            for i in ON_HOST[func]:
                outs[i].fake_device = torch.device("cpu")
        if view:
            self.replays.after(func, args, out)
        self.record(func, args, kwargs, fakes, outs)
        self.kernel(func, args, kwargs, tensors, outs)
        values.follow(self, func, args, kwargs, tensors, outs)
        if outs and not isinstance(outs[0], FakeTensor) or not outs:
            return out
        if outs[0].fake_device.type == "cpu" and any(t.fake_device.type == "cuda" for t in fakes):
            return tree_map_only(FakeTensor, lambda t: values.to_real(self, func, t, fakes), out)
        return out

    def gradient_by_strides(self, func, args, kwargs, place):
        """The gradient of a view whose function is AsStridedBackward on a card: its result is new (FunctionsManual.cpp).

        C++ takes it for a view of the old gradient, which a card frees here. Views after the first one have no gradient
        of their own on a card: theirs lies in the old one.
        """
        with self.fake:
            shape = list(func(*args, **kwargs).shape)
            if place == BETWEEN:
                return args[0].as_strided(shape, [0] * len(shape))
        out = self.__torch_dispatch__(aten.new_zeros.default, (), (args[0], shape))
        if self.unique is not None and references(args[0])[0] <= self.unique[0]:
            self.ledger.destroyed(args[0].untyped_storage()._cdata)
        return out

    def record(self, func, args, kwargs, fakes, outs):
        """Writes the requests of an operator: new storages of its outputs and what its kernel takes for itself."""
        ledger = self.ledger
        new, seen = [], set()
        for i, out in enumerate(outs):
            if isinstance(out, FakeTensor) and out.fake_device.type == "cuda" and out.layout is torch.strided:
                storage = out.untyped_storage()
                address = storage._cdata
                if address not in ledger.storages and address not in seen and storage.nbytes() > 0:
                    seen.add(address)
                    new.append((i, storage, out.fake_device.index))
        if not new and not any(t.fake_device.type == "cuda" for t in fakes):
            return
        module, stream, at = self.place(fakes, outs)
        self.context.stream = stream
        wrapped, self.session.local.wrapped = getattr(self.session.local, "wrapped", None), None
        inside = wrapped is func  # of a DTensor: autograd never works in place on a subclass
        if len(new) == 1 and func in IN_PLACE and self.session.in_backward() and not inside and not out_of_place():
            adds = func is aten.add.Tensor
            term = (own_terms(), args[0].untyped_storage()._cdata)
            anew = adds and (torch.is_grad_enabled() or term in self.terms)
            if not anew and self.overwrites(args[0], new[0][1], adds):
                func, new = IN_PLACE[func], []
                if func is aten._index_put_impl_.default:
                    args = (*args, True)  # unsafe
        elif len(new) == 1 and func in FORMULA and self.session.in_backward() and in_formula(func, args[0], self.unique):
            if self.inherits(args[0], new[0][1]):
                func, new = FORMULA[func][0], []
        number = own_terms() if new and self.session.in_backward() else 0
        made = {(number, storage._cdata) for _, storage, _ in new} if number else set()
        self.terms = {t for t in self.terms if t[0] == number} | made
        steps = kernels.plan(func, args, kwargs, outs, self.context)
        if not new and not steps:
            if not kernels.known(func) and outs and not values.is_view(func):
                self.count_outside(func, 0)
            return
        if not kernels.known(func):
            self.count_outside(func, sum(s.nbytes() for _, s, _ in new))
        if not at:
            at = where_in_program()
        name = func._schema.name.removeprefix("aten::")
        device = new[0][2] if new else next((t.fake_device.index for t in fakes if t.fake_device.type == "cuda"), 0)
        where = {"device": device, "stream": stream, "tag": f"{module}:{name}" if module else name, "at": at}
        if not steps:
            for _, storage, device in new:
                ledger.adopt(storage, ledger.request(storage.nbytes(), **{**where, "device": device}))
            return
        self.play(steps, new, where, name)

    def overwrites(self, target, storage, adds):
        """Gives the block of the first argument to the output, where a card's autograd works in place.

        Autograd avoids that for subclasses of Tensor, which fake tensors are (accumulate in engine/input_buffer.cpp, and
        areAnyTensorSubclassLike in FunctionsManual.cpp): it does so for gradients that nothing else refers to.
        """
        if not isinstance(target, FakeTensor) or not called_by_engine():
            return False
        old = target.untyped_storage()
        counts = references(target)
        if self.unique is None:
            self.unique = counts
        dense = is_dense(target)
        if not dense or counts[0] > self.unique[0] or (adds and counts[1] > self.unique[1]):
            return False
        return self.inherits(target, storage)

    def inherits(self, target, storage):
        """The block of a tensor becomes that of a new storage of the same size. False: it has none."""
        block = self.ledger.of(target)
        if block is None or block.size != storage.nbytes():
            return False
        del self.ledger.storages[target.untyped_storage()._cdata]
        self.ledger.adopt(storage, block)
        return True

    def learn_references(self):
        """Counts the references to a gradient that only autograd holds, with a small graph; nothing is recorded."""
        self.unique, self.ledger.closed = None, True
        with torch.enable_grad():
            x = torch.zeros(4, device="cuda", requires_grad=True)
            y = x * 2
            (y.sin().sum() + y.cos().sum()).backward()
        self.ledger.closed = False
        self.nodes.clear()
        self.outside.clear()

    def kernel(self, func, args, kwargs, tensors, outs):
        """Writes the kernel of an operator with its time, unless the operator is only a view."""
        if values.is_view(func):
            return
        fakes = [t for t in (*outs, *tensors) if isinstance(t, FakeTensor) and t.fake_device.type == "cuda"]
        if fakes and not self.ledger.closed:
            self.ledger.driver.launched(func, args, outs)
        if fakes and self.session.kernel_times:
            self.session.host_ns += kernel_times.HOST_NS
            self.ledger.trace.event("t", int(self.session.host_ns))
            time = kernel_times.nanoseconds(func, args, kwargs, outs, tensors, self.session.card)
            stream = self.ledger.ordinal(fakes[0].fake_device.index, self.context.stream)
            self.ledger.trace.event("k", stream, time)

    def play(self, steps, new, where, name):
        """Writes the steps of a plan of kernels.py in order."""
        taken = []
        try:
            self.play_steps(steps, taken, {i: s for i, s, _ in new}, where, name)
        finally:
            for block in taken:
                self.ledger.release(block)

    def play_steps(self, steps, taken, todo, where, name):
        ledger = self.ledger
        for step in steps:
            if step[0] == "out":
                if step[1] in todo:
                    storage = todo.pop(step[1])
                    size = step[2] if len(step) > 2 else storage.nbytes()
                    if size:
                        ledger.adopt(storage, ledger.request(size, **where))
            elif step[0] == "take":
                taken.append(ledger.request(step[1], **{**where, "tag": where["tag"] + " workspace"}))
            elif step[0] == "probe":
                tag = f"{where['tag']} {step[2]}"
                taken.append(ledger.request(step[1], **{**where, "tag": tag}, may_fail=True, plans=step[3:]))
            elif step[0] == "empty_cache":
                ledger.empty_cache()
            elif step[0] == "give":
                ledger.release(taken[step[1]])
                taken[step[1]] = None
            elif step[0] == "keep":
                ledger.keep(step[1], step[2], device=where["device"], stream=where["stream"], tag=f"{step[1][0]}")
            elif step[0] == "unsure":
                self.session.unsure(name, step[1], step[2])
        for i in sorted(todo):
            ledger.adopt(todo[i], ledger.request(todo[i].nbytes(), **where))

    def place(self, fakes, outs):
        """(module, stream, place) of the operator that runs now. In backward they are those of its forward operator."""
        session = self.session
        if session.in_backward():
            self.context.thread = "backward"
            node = torch._C._current_autograd_node()
            info = self.nodes.get(number_of(node)) if node is not None else None
            if info is None:
                return "backward", session.stream_now(), ""
            stream = session.stream_now()
            if stream == session.stream_of_backward:  # else a hook has chosen another one
                stream = info[1]
            return info[0] + ".backward" if info[0] else "backward", stream, info[2]
        self.context.thread = "main"
        module, stream = session.module_now(), session.stream_now()
        if torch.is_grad_enabled() and outs:
            number = torch.autograd._get_sequence_nr() - 1
            if number not in self.nodes:
                at = where_in_program()
                self.nodes[number] = (module, stream, at)
                return module, stream, at
        return module, stream, ""

    def count_outside(self, func, size):
        """Counts an operator whose kernel's own memory is not known."""
        entry = self.outside.setdefault(str(func), [0, 0])
        entry[0] += 1
        entry[1] += size

    def pinned(self, tensor):
        """The tensor is in pinned host memory: its storage is a request with space=pinned."""
        if isinstance(tensor, torch.Tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.ledger.storages:
                block = self.ledger.request(storage.nbytes(), tag="pinned", at=where_in_program(), pinned=True)
                self.ledger.adopt(storage, block)
        return tensor
