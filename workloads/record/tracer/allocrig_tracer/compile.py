"""torch.compile in a program without a GPU.

Dynamo, AOTAutograd and Inductor run as they are, up to the wrapper that Inductor generates: Python code that allocates
and frees buffers in the order of the compiled program, calls ATen's kernels for what Inductor does not generate (matrix
products, convolutions, attention), and launches Triton kernels. The wrapper then runs as it is, on tensors without
data: its allocations are those of the card. Only the Triton kernels are not compiled and do nothing; compiled_kernels.py
has what their first launch asks of the allocator, and graph_trees.py has mode="reduce-overhead".

Rules: the caches of the compiler are cold, as in the first run on a machine. mode="max-autotune" keeps the choices of
the default mode, because they depend on measured times. A function that Inductor cannot lower here runs uncompiled, and
the trace says so.
"""

import contextlib
import functools
import os
import sys
import tempfile
import types

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from . import after_import, attention, compiled_kernels, fake, graph_trees, triton_kernels
from .card import CardGenerator

aten = torch.ops.aten
MEASURED = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning")
CPU = torch.device("cpu")


def install(current):
    """Puts the stand-ins in place, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    _fake_modes(current)
    _tracing(current)
    _attention(current)
    after_import("triton", lambda: triton_kernels.install(current))
    after_import("torch._inductor.compile_fx", lambda: _inductor(current))


def _random(current):
    """An operator that recomputation runs again with the same random numbers: the generators' states are the host's."""
    again = torch._prims.rng_prims.graphsafe_run_with_rng_state
    session = current()
    torch.cuda.default_generators = tuple(CardGenerator(i) for i in range(session.devices))

    @again.py_impl(type(session.mode))
    def run(mode, op, *args, rng_state=None, **kwargs):
        with mode:
            return op(*args, **kwargs)


def keep_rules():
    """Dynamo's rules stay those of PyTorch's own functions, also when it clears its caches and makes them again."""
    from torch._dynamo import trace_rules

    rules = trace_rules.get_torch_obj_rule_map()
    trace_rules.get_torch_obj_rule_map = functools.cache(lambda: rules)


def not_compiled(session, error):
    """A graph that cannot be compiled here runs as it is. The trace counts it among the operators that are not known."""
    entry = session.mode.outside.setdefault("torch.compile (not compiled)", [0, 0])
    entry[0] += 1
    print(f"allocrig trace: a graph runs uncompiled: {type(error).__name__}: {error}".split("\n")[0][:200], file=sys.stderr)


def _fake_modes(current):
    """The compiler's own modes: C++ code that says `meta` means the card, as in fake.py."""

    def wrap(mode_type):
        dispatch = mode_type.__torch_dispatch__

        def dispatched(mode, func, types, args=(), kwargs=None):
            session = current()
            device = kwargs.get("device") if kwargs else None
            if session is None or device is None:
                return dispatch(mode, func, types, args, kwargs)
            device = torch.device(device)
            if device.type == "meta" and not session.meta_wanted(()):
                kwargs = {**kwargs, "device": session.current_device()}
            elif device.type == "cuda" and func is aten._to_copy.default and getattr(args[0], "constant", None) is not None:
                # The mode would copy the value of a constant to the card itself.
                constant, args[0].constant = args[0].constant, None
                try:
                    return dispatch(mode, func, types, args, kwargs)
                finally:
                    args[0].constant = constant
            return dispatch(mode, func, types, args, kwargs)

        mode_type.__torch_dispatch__ = dispatched

    for mode_type in (FakeTensorMode, FunctionalTensorMode, ProxyTorchDispatchMode):
        wrap(mode_type)
    FunctionalTensor.device = property(lambda self: torch._from_functional_tensor(self.elem).device)
    FunctionalTensor.is_cuda = property(lambda self: self.device.type == "cuda")
    make, autocast = torch.Tensor._make_wrapper_subclass, torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)

    def make_wrapper(cls, *args, **kwargs):
        """Autocast casts the functional tensors of the card as well: C++ adds its key only to those of a CUDA device."""
        at = next((i for i, value in enumerate(args) if isinstance(value, torch._C.DispatchKeySet)), None)
        if cls is FunctionalTensor and at is not None:
            inner = torch._C._dispatch_keys(torch._from_functional_tensor(sys._getframe(1).f_locals["elem"]))
            args = (*args[:at], args[at] | (inner & autocast), *args[at + 1 :])
        return make(cls, *args, **kwargs)

    torch.Tensor._make_wrapper_subclass = make_wrapper
    resolve, keys = torch._ops.resolve_key, torch._C.DispatchKey

    def resolved(op, key):
        """Which kernel autograd finds. Operators with a kernel for meta alone would not be decomposed as on a card."""
        if key != keys.AutogradMeta:
            return resolve(op, key)
        found = resolve(op, keys.AutogradCUDA)
        return key if found == keys.AutogradCUDA else found

    torch._ops.resolve_key = resolved
    for where in (aten.where.Scalar, aten.where.ScalarSelf, aten.where.ScalarOther):
        where.py_impl(keys.CompositeImplicitAutograd)(_where)


def _where(condition, *values):
    """`where` with numbers, as C++ divides it up. There a condition on the host seems to be on the card."""
    dtype = torch.result_type(*values)
    device = next((v.device for v in values if isinstance(v, torch.Tensor)), condition.device)
    both = (v.to(dtype) if isinstance(v, torch.Tensor) else torch.scalar_tensor(v, dtype=dtype, device=device) for v in values)
    return aten.where.self(condition, *both)


@contextlib.contextmanager
def _without_own_hooks():
    """The tracer's hooks of all modules are not part of the program that Dynamo sees."""
    module = torch.nn.modules.module
    always, removed = module._global_forward_hooks_always_called, []
    for hooks in (module._global_forward_pre_hooks, module._global_forward_hooks):
        own = {k: h for k, h in hooks.items() if getattr(h, "__module__", "").startswith(__package__)}
        removed.append((hooks, own))
        removed.append((always, {k: always[k] for k in own if k in always}))
    for hooks, own in removed:
        for key in own:
            del hooks[key]
    try:
        yield
    finally:
        for hooks, own in removed:
            hooks.update(own)


def _enter():
    """Guards of a compiled program can ask for an empty list of hooks: the tracer's are not in it while it runs."""
    hidden = contextlib.ExitStack()
    hidden.enter_context(_without_own_hooks())
    return hidden.close


def _tracing(current):
    """Dynamo compiles a frame without the tracer's mode and hooks."""
    from torch._dynamo import convert_frame, device_interface, eval_frame, trace_rules
    from torch._dynamo.variables import TorchInGraphFunctionVariable

    trace_rules.get_torch_obj_rule_map()[torch.tensor] = TorchInGraphFunctionVariable
    interface, cuda = device_interface.CudaInterface, torch.cuda
    for name in (
        "current_device", "set_device", "device_count", "stream", "current_stream", "set_stream", "synchronize",
        "get_device_properties", "memory_allocated", "is_bf16_supported",
    ):  # fmt: skip
        setattr(interface, name, staticmethod(getattr(cuda, name)))
    interface.exchange_device = staticmethod(cuda._exchange_device)
    interface.maybe_exchange_device = staticmethod(cuda._maybe_exchange_device)
    interface.get_raw_stream = staticmethod(torch._C._cuda_getCurrentRawStream)
    interface.device, interface.Stream, interface.Event = cuda.device, cuda.Stream, cuda.Event
    compile_frame = convert_frame._compile

    def compiled(*args, **kwargs):
        with _without_own_hooks():
            return compile_frame(*args, **kwargs)

    convert_frame._compile = compiled
    context = eval_frame._TorchDynamoContext
    make = context.__init__

    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self.enter_exit_hooks.append(_enter)

    context.__init__ = init
    check, own = trace_rules.check, os.path.dirname(__file__) + os.sep

    def checked(obj, is_inlined_call=False):
        """Functions here that stand for C++ are not frames of their own: on a card Dynamo does not see them."""
        code = isinstance(obj, types.CodeType) and not is_inlined_call
        return code and obj.co_filename.startswith(own) or check(obj, is_inlined_call)

    trace_rules.check = checked
    from torch._dynamo.variables.optimizer import OptimizerVariable

    call_method = OptimizerVariable.call_method

    def call_optimizer(self, tx, name, args, kwargs):
        """Dynamo runs `_init_group`, which makes the states, at once and not in the compiled program."""
        if name != "_init_group" or not hasattr(self.value, name):
            return call_method(self, tx, name, args, kwargs)
        kind, plain = type(self.value), type(self.value)._init_group

        def init_group(*args, **kwargs):
            with current().mode:
                return plain(*args, **kwargs)

        kind._init_group = init_group
        try:
            return call_method(self, tx, name, args, kwargs)
        finally:
            kind._init_group = plain

    OptimizerVariable.call_method = call_optimizer
    hooked = torch.nn.modules.module._has_any_global_hook

    def has_any_global_hook():
        with _without_own_hooks():
            return hooked()

    torch.nn.modules.module._has_any_global_hook = has_any_global_hook
    # Dynamo has one entry for each of these functions: they must not be the same object.
    seen = set()
    for module in (cuda, torch.accelerator):
        for name, function in list(vars(module).items()):
            if not isinstance(function, types.FunctionType):
                continue
            if function in seen and function.__module__.startswith(__package__):
                copy = types.FunctionType(
                    function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
                )
                copy.__kwdefaults__ = function.__kwdefaults__
                setattr(module, name, copy)
            seen.add(function)


def _attention(current):
    """Inside the compiler scaled_dot_product_attention is decomposed as for a card, not as for `meta`."""
    op = aten.scaled_dot_product_attention.default
    composite = torch._C.DispatchKey.CompositeImplicitAutograd

    def decomposed(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        session = current()
        rest = (query, key, value, attn_mask, dropout_p, is_causal)
        if session is None or query.device.type != "cuda":
            return op._op_dk(composite, *rest, scale=scale, enable_gqa=enable_gqa)
        return attention.attend(*rest, scale, enable_gqa, float(session.card.sm))

    op.py_impl(composite)(decomposed)


class _OnCpu(TorchDispatchMode):
    """Small constants that Inductor computes while it compiles are computed on the CPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(torch.device, lambda _: CPU, (args, kwargs or {}))
        return func(*args, **kwargs)


def _inductor(current):
    """Called when Inductor has been imported."""
    import torch._functorch.config
    import torch._inductor.config as config
    import torch.utils._triton
    from torch._inductor import compile_fx, cudagraph_trees, utils
    from torch._inductor.fx_passes import joint_graph

    folder = tempfile.TemporaryDirectory(prefix="allocrig-compile-", ignore_cleanup_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name  # removed at exit
    _inductor.folder = folder
    fake.LIBRARY = (*fake.LIBRARY, folder.name)
    config.compile_threads = 1
    config.fx_graph_cache = config.fx_graph_remote_cache = False
    config.autotune_remote_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch.utils._triton.triton_hash_with_backend = lambda: "no card"

    _random(current)
    lower, inside = compile_fx.compile_fx, []

    def lowered(model, inputs, *args, config_patches=None, **kwargs):
        session, patches = current(), dict(config_patches or {})
        if inside:  # it calls itself
            return lower(model, inputs, *args, config_patches=config_patches, **kwargs)
        if any(patches.get(name, getattr(config, name)) for name in MEASURED):
            session.refuse("torch.compile chooses kernels by their measured times (max-autotune): compile without it")
        patches.update(dict.fromkeys(MEASURED, False))
        inside.append(True)
        try:
            return lower(model, inputs, *args, config_patches=patches, **kwargs)
        except torch._dynamo.exc.RestartAnalysis:
            raise  # Dynamo traces the function again, with what it has learnt
        except Exception as error:
            if os.environ.get("ALLOCRIG_TRACE_DEBUG"):
                raise
            not_compiled(session, error)
            return torch._dynamo.disable(model.forward)
        finally:
            inside.pop()

    compile_fx.compile_fx = lowered
    fold = joint_graph.UniformValueConstantFolder.run

    def folded(self):
        with _OnCpu():
            return fold(self)

    joint_graph.UniformValueConstantFolder.run = folded

    def copy_misaligned(inputs, indices, return_pairs=None):
        """Inputs that do not begin at a multiple of 16 bytes are copied. Storages begin at one."""
        old, new = [], []
        for i in indices:
            tensor = inputs[i]
            if tensor.storage_offset() * tensor.element_size() % utils.ALIGNMENT:
                inputs[i] = utils.clone_preserve_strides(tensor)
                if return_pairs is not None and i in return_pairs:
                    old.append(tensor)
                    new.append(inputs[i])
        return old, new

    for module in (utils, compile_fx, cudagraph_trees):
        module.copy_misaligned_inputs = copy_misaligned

    guards = torch._C._dynamo.guards

    def empty_strided(size, stride, dtype):
        return torch.empty_strided(size, stride, dtype=dtype, device=current().current_device())

    def reinterpret(tensor, size, stride, offset=0):
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)

    guards._empty_strided_cuda = empty_strided
    guards._reinterpret_tensor = reinterpret
    compiled_kernels.install(current)
    graph_trees.install(current)
