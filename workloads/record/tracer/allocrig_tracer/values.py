"""Values of small tensors, and the operators whose results depend on them.

A fake tensor has no data, but sizes of a program can depend on data: masks, routes of experts, sampled tokens. A small
tensor of integers or booleans (and a smaller one of any type, as a mask that is added) therefore keeps a real copy on the CPU, as far as it follows
from known values. Where a value comes from one that is not known, such as the argmax of activations, it is drawn from a
generator with the tracer's seed. A narrow product of matrices, as the gate of a mixture of experts, is drawn from the
normal distribution: the scale of the weights is that of their initialisation, activations have unit scale. Drawn values
are counted where a size or the program's own control flow uses them.

The value of a view is a view of the value, so that what is written to one is in the other. Whether it depends on a draw
is kept with the storage; where something unknown is written to a storage, no tensor that shares it has a value any more.
"""

import functools
import math
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten
MAX_INTEGERS, MAX_FLOATS = 1 << 23, 1 << 16  # elements of a tensor whose value is kept
MAX_MASK = 1 << 25  # the same of truth values, and of masks made of them
MAX_SAMPLE = 1 << 21  # elements of a tensor of any type that is random, or computed from such tensors alone
MAX_TABLE = 256  # integers of an empty tensor that the program fills, one after another
MAX_HOST_SAMPLES = 1 << 28  # bytes of the values of random tensors on the CPU that have no data otherwise
GATE_COLUMNS, GATE_ELEMENTS = 256, 1 << 18  # a product of matrices that may be a gate: its value is drawn
MAX_REAL_COPY = 1 << 22  # elements of a tensor that becomes real when it is copied to the CPU
ORDINARY = object()  # what a special case returns if the operator is an ordinary one after all


def keeps(tensor):
    """Whether the value of a tensor is kept."""
    floating = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return tensor.numel() <= (MAX_FLOATS if floating else MAX_MASK if tensor.dtype == torch.bool else MAX_INTEGERS)


def memory(tensor):
    """What tensors that share memory have in common."""
    return tensor.untyped_storage() if tensor.layout is torch.strided else tensor


def value_of(tensor):
    """The real copy of a tensor, the tensor itself if it is real, or None."""
    if not isinstance(tensor, FakeTensor):
        return tensor
    value, changes = tensor.__dict__.get("_value", NO_VALUE)
    return value if value is not None and changes == getattr(memory(tensor), "_changes", 0) else None


def share_value(tensor, value):
    """Binds a real copy that lies in the same memory as the values of the tensors that this one shares its storage with.
    None: this tensor has no value, the others keep theirs."""
    tensor._value = value, getattr(memory(tensor), "_changes", 0)


def set_value(tensor, value, drawn=False):
    """Binds a real copy to a fake tensor, or removes it. `drawn` tells that it depends on a draw. Other tensors of the
    storage lose their values, unless they share the memory of the real copy."""
    of = memory(tensor)
    if value is None or value is not value_of(tensor):
        of._changes, of._drawn = getattr(of, "_changes", 0) + 1, drawn
    elif drawn:
        of._drawn = True
    share_value(tensor, value)


def is_drawn(tensor):
    return isinstance(tensor, FakeTensor) and value_of(tensor) is not None and getattr(memory(tensor), "_drawn", False)


def used(mode, func, tensor):
    """Counts the use of a drawn value."""
    if is_drawn(tensor) and isinstance(func, str):
        unknown(mode, func, tensor)
    elif is_drawn(tensor):
        mode.session.drawn(func._schema.name.split("::")[1])


def is_view(func):
    """Whether an operator only makes a view, or changes nothing: it has no kernel."""
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def changes_input(func):
    return any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)


@functools.cache
def changed_arguments(func):
    """[(position, name)] of the arguments that an operator changes; its schema does not tell those of batch norms."""
    unmarked = BATCH_NORMS if func.overloadpacket in (getattr(aten, name) for name in UPDATES) else ()
    arguments = enumerate(func._schema.arguments)
    return [(i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write or a.name in unmarked]


def written(func, args, kwargs):
    """The fake tensors that an operator changes, also those of `out=`."""
    found = []
    for i, name in changed_arguments(func):
        value = args[i] if i < len(args) else kwargs.get(name)
        found.extend([value] if isinstance(value, torch.Tensor) else value or [])
    return [t for t in found if isinstance(t, FakeTensor)]


def overwritten(func, args, kwargs):
    """The tensors among them of which an operator replaces all elements, whatever they were: integers and truth values."""
    found = [kwargs[name] for i, name in changed_arguments(func) if i >= len(args) and name in kwargs]
    if func in OVERWRITES:
        found.append(args[0])
    return [t for t in found if isinstance(t, FakeTensor) and keeps(t) and not t.dtype.is_floating_point]


def forget(tensors):
    for t in tensors:
        if isinstance(t, FakeTensor):
            set_value(t, None)


def forget_tables(tensors):
    """A kernel of the program may have filled them."""
    forget(t for t in tensors if isinstance(t, FakeTensor) and hasattr(t.untyped_storage(), "_table"))


def real_call(mode, func, args, kwargs, replaced=()):
    """Runs an operator on the real copies. Returns None if one of them is not known, unless the operator replaces it, or
    if the operator fails on the CPU, and nothing of an operator that returns nothing: ()."""

    def real(value):
        if isinstance(value, torch.Tensor):
            found = value_of(value)
            if found is None and any(value is r for r in replaced):
                found = torch.empty(tuple(value.shape), dtype=value.dtype)
            if found is None:
                raise LookupError
            return found
        if isinstance(value, (list, tuple)):
            return [real(v) for v in value]
        return torch.device("cpu") if isinstance(value, torch.device) else value

    try:
        with mode.session.paused(), mode.session.random_numbers(), torch.no_grad():
            out = func(*[real(a) for a in args], **{k: real(v) for k, v in kwargs.items()})
        return () if out is None else out
    except (LookupError, RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return None


def flat(out):
    if isinstance(out, torch.Tensor):
        return [out]
    return [t for t in out if isinstance(t, torch.Tensor)] if isinstance(out, (list, tuple)) else []


RANDOM = ("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "uniform", "random", "exponential")


def follow_scale(func, args, outs):
    """Keeps the standard deviation of weights, with their storage, from their initialisation on."""
    target = args[0] if args else None
    if func in SETS_SCALE and isinstance(target, FakeTensor):
        low, high = (float(args[1]) if len(args) > 1 else 0.0), (float(args[2]) if len(args) > 2 else 1.0)
        target.untyped_storage()._scale = (high - low) / math.sqrt(12) if func is aten.uniform_.default else high
    elif func in COPIES and outs and isinstance(outs[0], FakeTensor):
        source = args[1] if func is aten.copy_.default else target
        scale = getattr(source.untyped_storage(), "_scale", None) if source.layout is torch.strided else None
        if scale is not None:
            outs[0].untyped_storage()._scale = scale


def follow_shares(func, args, outs):
    """Marks the results of a softmax, and views and parts of them, with the number of classes that share the probability."""
    classes = getattr(args[0], "_classes", None) if args and isinstance(args[0], FakeTensor) else None
    if func is aten._softmax.default and args[0].dim():
        classes = args[0].shape[args[1]]
    elif classes is None or not (is_view(func) or func in PARTS):
        return
    for out in outs:
        if isinstance(out, FakeTensor):
            out._classes = classes


def follow(mode, func, args, kwargs, tensors, outs):
    """Gives the outputs of an operator their values, as far as these are known or can be drawn."""
    if func in SETS_SCALE or func in COPIES:
        follow_scale(func, args, outs)
    changed = written(func, args, kwargs)
    if func in KEEPS_INPUT or not outs and not changed:
        return
    if not outs and func.namespace != "aten":
        return forget(changed)  # of a library: its fake version does nothing
    follow_shares(func, args, outs)
    replaced = overwritten(func, args, kwargs)
    inputs = [t for t in tensors if not any(t is r for r in replaced)]
    filled = func.overloadpacket in FILLED and outs[0].layout is torch.strided  # whatever the tensor holds that it is like
    drawn = any(is_drawn(t) for t in inputs) and not filled or func in GATES and not mode.session.in_backward()
    known = filled or all(value_of(t) is not None for t in inputs)
    sample = known and (drawn or random(func)) and func not in HEAVY

    def holds(t):
        if not isinstance(t, FakeTensor):
            return False
        mask = known and (is_view(func) or func.overloadpacket in MASKS) and t.numel() <= MAX_MASK
        cast = known and func is aten._to_copy.default and not args[0].dtype.is_floating_point and t.numel() <= MAX_INTEGERS
        return keeps(t) or mask or cast or drawn and may_be_gate(t) or sample and t.numel() <= MAX_SAMPLE

    if not changed and not any(holds(t) for t in outs):
        return
    if known:
        table = outs and outs[0].numel() <= MAX_TABLE and not outs[0].dtype.is_floating_point and not outs[0].dtype.is_complex
        if not tensors and func.overloadpacket in EMPTY and not table:
            return
        real = fill(mode, func, args, outs[0]) if filled else computed(mode, func, args, kwargs, replaced)
        if real is not None and func.overloadpacket in EMPTY:
            real.zero_()  # what the program writes into it follows
            outs[0].untyped_storage()._table = True
        if real is not None:
            assumed = getattr(mode.session.local, "assumed", {}) if drawn else {}
            if func._schema.name.split("::")[1] in assumed and real.dtype == torch.bool:
                real = torch.full_like(real, assumed[func._schema.name.split("::")[1]])
            bind(func, outs, flat(real), changed, drawn or random(func), holds)
            return
    forget(changed)
    for fake in outs:
        if isinstance(fake, FakeTensor):
            value = draw(mode, func, args, fake)
            if value is not None:
                set_value(fake, value, True)


def computed(mode, func, args, kwargs, replaced):
    """What an operator returns for known values, or None."""
    if func is aten.as_strided.default and layout(value_of(args[0])) != layout(args[0]):
        return None  # elements by their place in memory, which is another one
    return real_call(mode, func, args, kwargs, replaced)


def bind(func, outs, reals, changed, drawn, holds):
    """Gives the results of a computation to the outputs, and to the tensors that were changed."""
    for fake, value in zip(outs, reals):
        if is_view(func) and isinstance(fake, FakeTensor):
            share_value(fake, value if holds(fake) and fake.shape == value.shape else None)
        elif holds(fake) and fake.shape == value.shape:
            set_value(fake, value, drawn)
    for t in changed:
        value = value_of(t)
        set_value(t, value if value is not None and value.shape == t.shape else None, drawn)


def layout(tensor):
    return tensor.stride(), tensor.storage_offset()


def fill(mode, func, args, out):
    """The value of a tensor of one number that takes its shape or its device from another tensor."""
    number = FILLED[func.overloadpacket]
    with mode.session.paused():
        return torch.full(tuple(out.shape), args[-1] if number is None else number, dtype=out.dtype)


host_samples = [0]  # bytes of the values of large random tensors of the host


def host_sample(mode, func, args, kwargs, elements):
    """A random tensor of the host with its real numbers, of which the program may take sizes; None if that is too much."""
    if elements > MAX_SAMPLE or not random(func) or host_samples[0] + 8 * elements > MAX_HOST_SAMPLES:
        return None
    real = func(*args, **kwargs)
    out = mode.hollow(real)
    set_value(out, real)
    size = real.nbytes
    host_samples[0] += size

    def freed():
        host_samples[0] -= size

    weakref.finalize(real, freed)
    return out


def random(func):
    return func._schema.name.split("::")[1].rstrip("_").split("_like")[0] in RANDOM


def may_be_gate(fake):
    return fake.dim() >= 1 and fake.numel() <= GATE_ELEMENTS and fake.dtype.is_floating_point


def dim_size(args, at=1):
    """Elements along the dimension that a reduction's argument names; all elements without one."""
    tensor = args[0]
    dim = args[at] if len(args) > at and isinstance(args[at], int) else None
    return tensor.numel() if dim is None or tensor.dim() == 0 else tensor.shape[dim]


def draw(mode, func, args, fake):
    """A value for an output that depends on unknown data: an index, a permutation or a truth value."""
    name = func._schema.name.split("::")[1]
    shape, generator = tuple(fake.shape), mode.session.generator
    if fake.dtype.is_floating_point:
        narrow = func in GATES and fake.shape[-1] <= GATE_COLUMNS and may_be_gate(fake)
        if not narrow or mode.session.in_backward() and not torch.is_grad_enabled():  # with it, layers run again
            return None
        with mode.session.paused():
            weight = args[-1]
            scale = getattr(weight.untyped_storage(), "_scale", None)
            scale = 1.0 if scale is None else scale * math.sqrt(weight.shape[0])
            return (torch.randn(shape, generator=generator) * scale).to(fake.dtype)
    if not keeps(fake):
        return None
    with mode.session.paused():
        if fake.dtype == torch.bool:
            fixed = FIXED_TRUTHS.get(name)
            if fixed is not None:
                return torch.full(shape, fixed, dtype=torch.bool)
            assumed = getattr(mode.session.local, "assumed", {}).get(name)
            if assumed is not None:
                return torch.full(shape, assumed, dtype=torch.bool)
            if name not in COMPARISONS:
                return None
            if name in ("eq", "ne") and finite_test(args):
                return torch.full(shape, (name == "eq") == (args[1] is args[0]), dtype=torch.bool)
            return torch.rand(shape, generator=generator) < chance(name, args, fake)
        if name in ("argmax", "argmin", "max", "min", "median", "kthvalue", "mode", "multinomial"):
            bound = args[0].shape[-1] if name == "multinomial" else dim_size(args, 2 if name == "kthvalue" else 1)
            return torch.randint(0, max(bound, 1), shape, generator=generator, dtype=fake.dtype)
        if name in ("topk", "sort", "argsort"):
            dims = [a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)]
            if name == "topk":
                dims = dims[1:]
            dim = dims[0] if dims else -1
            size = args[0].shape[dim] if args[0].dim() else 1
            wide = list(shape)
            if wide:
                if name == "topk" and 16 * shape[dim] < size:  # few of many: hardly ever twice the same
                    return torch.randint(0, size, shape, generator=generator)
                wide[dim] = size
            order = torch.rand(wide, generator=generator).argsort(dim) if wide else torch.zeros((), dtype=torch.int64)
            return order.narrow(dim, 0, shape[dim]).contiguous() if wide else order
        return None


def chance(name, args, fake):
    """How probable it is that an unknown truth value is true: of all or any of many, each of which is as often as not.
    One of n classes has about one n-th of the probability, as long as a model is not trained."""
    classes = getattr(args[0], "_classes", None)
    if classes and name in ("gt", "ge", "lt", "le") and isinstance(args[1], float) and args[1] > 0:
        above = math.erfc(math.log(classes * args[1]) / LOGIT_SCALE / math.sqrt(2)) / 2
        return above if name in ("gt", "ge") else 1 - above
    many = args[0].numel() // max(1, fake.numel())
    if name not in ("all", "any") or args[0].numel() > MAX_MASK:  # of more it is a test of numbers that are not finite
        return 0.5
    return 0.5**many if name == "all" else 1 - 0.5**many


def finite_test(args):
    """Whether a comparison asks for numbers that are not finite, as isfinite does: x == x, abs(x) != inf."""
    return args[1] is args[0] or isinstance(args[1], float) and math.isinf(args[1])


COMPARISONS = {"gt", "lt", "ge", "le", "eq", "ne", "bernoulli", "logical_and", "logical_or", "logical_not", "any", "all"}
FIXED_TRUTHS = {"isnan": False, "isinf": False, "isfinite": True, "isposinf": False, "isneginf": False}
SETS_SCALE = {aten.uniform_.default, aten.normal_.default}
LOGIT_SCALE = 0.5  # of a model that is not trained
PARTS = {aten._to_copy.default, aten.clone.default, aten.index.Tensor, aten.index_select.default, aten.masked_select.default}
COPIES = {aten._to_copy.default, aten.clone.default, aten.copy_.default}
GATES = {aten.mm.default, aten.addmm.default}
HEAVY = {*GATES, aten.bmm.default, aten.baddbmm.default, aten.convolution.default}  # not computed for large samples
MASKS = {aten.where, aten.masked_fill}  # of known truth values: masks that are added, of which a row is used
EMPTY = {aten.empty, aten.empty_strided, aten.empty_like, aten.new_empty, aten.new_empty_strided}
FILLED = {aten.new_zeros: 0, aten.new_ones: 1, aten.zeros_like: 0, aten.ones_like: 1, aten.new_full: None, aten.full_like: None}
KEEPS_INPUT = {aten._amp_foreach_non_finite_check_and_unscale_.default, aten.record_stream.default}
OVERWRITES = {aten.copy_.default, aten.fill_.Scalar, aten.fill_.Tensor, aten.zero_.default}
UPDATES = ("native_batch_norm", "cudnn_batch_norm", "batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts")
BATCH_NORMS = ("running_mean", "running_var")
NO_VALUE = (None, 0)
NEVER_HOLLOW = {aten.scalar_tensor.default, aten.arange.default, aten.arange.start, aten.arange.start_step}


def need(mode, func, tensor):
    """The value of a tensor; drawn, if it is not known."""
    value = value_of(tensor)
    if value is not None:
        used(mode, func, tensor)
        return value
    name = func._schema.name.split("::")[1]
    mode.session.drawn(name)
    with mode.session.paused():
        if tensor.dtype == torch.bool:
            return torch.rand(tuple(tensor.shape), generator=mode.session.generator) < 0.5
        if tensor.dtype.is_floating_point:
            return torch.rand(tuple(tensor.shape), generator=mode.session.generator).to(tensor.dtype)
        return torch.randint(0, 1 << 15, tuple(tensor.shape), generator=mode.session.generator).to(tensor.dtype)


def unknown(mode, name, tensor):
    """Counts that the program reads a value that is not known: a number, or what may decide a size."""
    if tensor.dtype.is_floating_point:
        mode.session.read(name)
    else:
        mode.session.drawn(name)


def scalar(mode, func, args, kwargs):
    """item(): the value if it is known; else 1.0, False, or 0. The host waits for the stream."""
    mode.session.wait_for_stream(args[0])
    value = value_of(args[0])
    if value is not None:
        used(mode, "item", args[0])
        with mode.session.paused():
            return value.item()
    if args[0].fake_device.type == "cuda":
        unknown(mode, "item", args[0])
    if args[0].dtype == torch.bool:
        return False
    return 1.0 if args[0].dtype.is_floating_point else 0


def by_value(mode, func, args, kwargs):
    """An operator whose output sizes depend on values: its CPU kernel tells the sizes."""
    with mode.session.paused():
        inputs = [need(mode, func, a) if isinstance(a, torch.Tensor) else a for a in args]
        real = func(*inputs, **{k: v for k, v in kwargs.items() if k != "device"})
    device = next(t.fake_device for t in args if isinstance(t, FakeTensor))
    outs = [mode.hollow(t, device) for t in flat(real)]
    for fake, value in zip(outs, flat(real)):
        if keeps(fake):
            set_value(fake, value, any(is_drawn(a) for a in args))
    mode.record(func, args, kwargs, [t for t in args if isinstance(t, FakeTensor)], outs)
    return outs[0] if isinstance(real, torch.Tensor) else tuple(outs)


def masked_select(mode, func, args, kwargs):
    """masked_select: only the mask has to be known."""
    source, mask = args
    with mode.session.paused():
        count = int(need(mode, func, mask).expand(torch.broadcast_shapes(source.shape, mask.shape)).sum())
        like = torch.empty((count,), dtype=source.dtype, device="meta")
    out = mode.hollow(like, source.fake_device)
    mode.record(func, args, kwargs, [t for t in args if isinstance(t, FakeTensor)], [out])
    return out


def masked_fill(mode, args, kwargs, mask):
    """TensorAdvancedIndexing.cpp, canDispatchToMaskedFill: one mask and a number on the CPU. None: not so."""
    target, indices, number = args[:3]
    accumulate = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
    if accumulate or number.numel() != 1 or isinstance(number, FakeTensor) or not mask.is_cuda:
        return None
    for _ in range(target.dim() - sum(1 if i is None else i.dim() for i in indices)):
        mask = mode.__torch_dispatch__(aten.unsqueeze.default, (), (mask, -1))
    return mode.__torch_dispatch__(aten.masked_fill_.Scalar, (), (target, mask, number.item()))


def indexing(mode, func, args, kwargs):
    """index and index_put_ with masks: each mask becomes the indices of its true elements, as on a card, unless a number
    is put."""
    indices = args[1]
    found = [i for i in indices if i is not None and i.dtype in (torch.bool, torch.uint8)]
    if not found:
        return ORDINARY
    if func is aten.index_put.default and not (len(args) > 3 and args[3] or kwargs.get("accumulate", False)):
        target = mode.__torch_dispatch__(aten.clone.default, (), (args[0],))
        mode.__torch_dispatch__(aten.index_put_.default, (), (target, *args[1:]), kwargs)
        return target
    if func is not aten.index.Tensor and len(found) == len([i for i in indices if i is not None]) == 1:
        out = masked_fill(mode, args, kwargs, found[0])
        if out is not None:
            return out
    plain = []
    for index in indices:
        if index is None or index.dtype not in (torch.bool, torch.uint8):
            plain.append(index)
            continue
        if not isinstance(index, FakeTensor):  # of the host
            plain.extend(index.nonzero().unbind(1))
            continue
        place = by_value(mode, aten.nonzero.default, (index,), {})
        plain.extend(mode.__torch_dispatch__(aten.select.int, (), (place, 1, i)) for i in range(index.dim()))
    return mode.__torch_dispatch__(func, (), (args[0], plain, *args[2:]), kwargs)


def copy_to_real(mode, func, args, kwargs):
    """copy_ into a real CPU tensor: its data becomes the value, if it is known."""
    target, source = args[0], args[1]
    if isinstance(target, FakeTensor):
        return ORDINARY
    value = value_of(source)
    if value is not None:
        used(mode, "copy to the CPU", source)
        with mode.session.paused():
            target.copy_(value)
    else:
        unknown(mode, "copy to the CPU", source)
    return target


def masked_scatter_backward(mode, func, args, kwargs):
    """FunctionsManual.cpp: the selected gradient, and zeros for what the mask did not take, if its elements are known."""
    grad, mask, sizes = args
    known, call = value_of(mask), mode.__torch_dispatch__
    if known is None or int(known.expand(grad.shape).sum()) > math.prod(sizes):
        return ORDINARY
    chosen = call(aten.masked_select.default, (), (grad, mask))
    missing = math.prod(sizes) - chosen.numel()
    if missing:
        zeros = call(aten.zeros.default, (), ([missing],), {"dtype": grad.dtype, "device": grad.fake_device})
        chosen = call(aten.cat.default, (), ([chosen, zeros],))
    return call(aten.view.default, (), (chosen, sizes))


def window(mode, func, args, kwargs):
    """TensorFactories.cpp: a periodic window is the beginning of one that has an element more."""
    name, count = func._schema.name.split("::")[1], args[0]
    if count < 2 or len(args) > 1 and not args[1]:
        return ORDINARY
    longer = getattr(aten, name).periodic if func._overloadname == "default" else func
    out = mode.__torch_dispatch__(longer, (), (count + 1, False, *args[2:]), kwargs)
    return mode.__torch_dispatch__(aten.slice.Tensor, (), (out, 0, 0, count))


def equal(mode, func, args, kwargs):
    """equal: by value if both are known, else true."""
    real = real_call(mode, func, args, kwargs)
    if real is None:
        mode.session.drawn("equal")
    return True if real is None else real


def allclose(mode, func, args, kwargs):
    """native/TensorCompare.cpp: isclose(..).all().item(). By value if both are known, else true."""
    with mode:
        out = func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
    return out or any(value_of(t) is None for t in args[:2])


def ignored(mode, func, args, kwargs):
    return None


def pin(mode, func, args, kwargs):
    """_pin_memory: a copy in pinned host memory."""
    tensor = args[0]
    with mode.session.paused():
        copy = mode.hollow(tensor) if isinstance(tensor, FakeTensor) else tensor.clone()
    return mode.pinned(copy)


def is_pinned(mode, func, args, kwargs):
    block = mode.ledger.of(args[0])
    return block is not None and block.pinned


def resize(mode, func, args, kwargs):
    """resize_ and set_: the storage may grow, which is a new request and a free of the old one."""
    value = value_of(args[0])
    with mode.fake:
        out = func(*args, **kwargs)
    if args[0].fake_device.type == "cuda":
        mode.session.storage_resized(args[0].untyped_storage(), args[0].fake_device.index)
    unchanged = func is aten.resize_.default and value is not None and value.shape == out.shape
    share_value(args[0], value if unchanged else None)
    return out


def suppress(mode, func, args, kwargs):
    """torchvision::nms (csrc/ops/cuda/nms_kernel.cu). The boxes of a network are not known: half of them stay."""
    boxes, scores, least = args
    call = mode.__torch_dispatch__
    count, device = boxes.shape[0], boxes.fake_device
    real = real_call(mode, func, args, kwargs)
    ordered, order = call(aten.sort.stable, (), (scores,), {"stable": True, "dim": 0, "descending": True})
    boxes = call(aten.index_select.default, (), (boxes, 0, order))
    places = {"device": device, "dtype": torch.int64}
    overlaps = call(aten.empty.memory_format, (), ([count * -(-count // 64)],), places)
    kept = call(aten.zeros.default, (), ([count],), {"device": device, "dtype": torch.bool})
    with mode.session.paused():
        truth = torch.rand(count, generator=mode.session.generator) < 0.5
        if real is not None:
            truth = torch.arange(count) < len(real)
    set_value(kept, truth, real is None or is_drawn(scores) or is_drawn(boxes))
    out = call(aten.masked_select.default, (), (order, kept))
    set_value(out, real, is_drawn(kept))
    del ordered, overlaps
    return out


WINDOWS = (aten.hann_window, aten.hamming_window, aten.blackman_window, aten.bartlett_window, aten.kaiser_window)
BY_NAME = {"torchvision::nms": suppress}
ON_CPU = {aten._pin_memory.default: pin, aten.is_pinned.default: is_pinned}
SPECIAL = {
    **ON_CPU,
    aten._local_scalar_dense.default: scalar,
    aten.nonzero.default: by_value,
    aten._unique2.default: by_value,
    aten._unique.default: by_value,
    aten.unique_consecutive.default: by_value,
    aten.unique_dim.default: by_value,
    aten.repeat_interleave.Tensor: by_value,
    aten.bincount.default: by_value,
    aten.masked_select.default: masked_select,
    aten.masked_scatter_backward.default: masked_scatter_backward,
    **{getattr(op, name): window for op in WINDOWS for name in op.overloads() if not name.endswith("out")},
    aten.index.Tensor: indexing,
    aten.index_put_.default: indexing,
    aten.index_put.default: indexing,
    aten._index_put_impl_.default: indexing,
    aten.copy_.default: copy_to_real,
    aten.equal.default: equal,
    aten.allclose.default: allclose,
    aten._assert_async.default: ignored,
    aten._assert_async.msg: ignored,
    aten.resize_.default: resize,
    aten.set_.source_Storage: resize,
    aten.set_.source_Storage_storage_offset: resize,
    aten.set_.source_Tensor: resize,
}


def to_real(mode, func, tensor, fakes):
    """What a copy from the card to the CPU returns: a real tensor, unless it is large and floating."""
    if tensor.numel() > MAX_REAL_COPY and tensor.dtype.is_floating_point:
        return tensor
    mode.session.wait_for_stream(fakes[0])
    value = value_of(tensor)
    if value is None:
        value = value_of(fakes[0]) if fakes[0].shape == tensor.shape else None
    if value is not None:
        used(mode, "copy to the CPU", fakes[0])
    with mode.session.paused():
        if value is not None:
            return value.to(tensor.dtype).clone()
        unknown(mode, "copy to the CPU", tensor)
        return torch.ones(tuple(tensor.shape), dtype=tensor.dtype)
