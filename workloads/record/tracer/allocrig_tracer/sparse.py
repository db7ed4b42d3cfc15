"""Sparse tensors (COO) on a card: each operator as the dense ones that PyTorch runs for it, with their requests.

A sparse tensor is PyTorch's own, with indices and values that have no data. The number of its elements after
coalescing follows from the values of the indices, if these are known; else no two indices are equal. Rules:
native/sparse/SparseTensor.cpp, native/sparse/cuda/SparseCUDATensor.cu and SparseCUDATensorMath.cu of PyTorch 2.11.
"""

import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import values

aten = torch.ops.aten
COO = torch.sparse_coo
_known = {}  # address of the storage of indices -> (weak reference to it, their value)


def is_sparse(tensor):
    return isinstance(tensor, torch.Tensor) and tensor.layout is COO


def applies(func, fakes):
    return func in MAKE or func in FROM_DENSE or any(t.layout is COO for t in fakes)


def leaves_host(func, args, kwargs):
    """Whether a sparse tensor of the host is copied to a card."""
    to_card = func is aten._to_copy.default and str(kwargs.get("device", "")).startswith("cuda")
    return to_card and is_sparse(args[0]) and not isinstance(args[0], FakeTensor)


def remember(indices):
    value = values.value_of(indices)
    if value is not None and isinstance(indices, FakeTensor):
        storage = indices.untyped_storage()
        address = storage._cdata
        _known[address] = weakref.ref(storage, lambda _: _known.pop(address, None)), value


def parts(mode, tensor):
    """Indices and values of a sparse tensor."""
    with mode.fake:
        indices, data = aten._indices.default(tensor), aten._values.default(tensor)
    entry = _known.get(indices.untyped_storage()._cdata)
    if entry is not None and entry[1].shape == indices.shape:
        values.share_value(indices, entry[1])
    return indices, data


def make(mode, indices, data, size, coalesced=None):
    remember(indices)
    sparse_dim = indices.shape[0]
    with mode.fake:
        return aten._sparse_coo_tensor_with_dims_and_tensors.default(
            sparse_dim, len(size) - sparse_dim, list(size), indices, data, dtype=data.dtype, layout=COO,
            device=data.fake_device, pin_memory=False, is_coalesced=coalesced)  # fmt: skip


def call(mode, func, *args, **kwargs):
    """An ordinary operator, as if the program had called it here."""
    return mode.__torch_dispatch__(func, (), args, kwargs)


def take(mode, like, size):
    """Memory of a kernel: it is freed when the caller drops the tensor."""
    return call(mode, aten.empty.memory_format, [size], dtype=torch.uint8, device=like.fake_device)


def rounded(size):
    return (size + 255) // 256 * 256


def merge_sort_bytes(count):
    """Temporary storage of thrust::sort_by_key with a comparison, 64-bit keys and values: two copies, and tiles."""
    return 255 + 2 * rounded(8 * count) + rounded(4 * (-(-count // 2048) + 1))


def construct(mode, func, args, kwargs):
    indices = args[3]
    if not isinstance(indices, FakeTensor):  # indices of the host beside values without data
        indices = mode.hollow(args[3])
        values.set_value(indices, args[3])
    with mode.fake:
        out = func(*args[:3], indices, *args[4:], **kwargs)
    remember(indices)
    return out


def move(mode, func, args, kwargs):
    """_to_copy: indices and values are copied (sparse_dtype and sparse_copy_ of SparseTensor.cpp)."""
    tensor, device = args[0], kwargs.get("device")
    real = not isinstance(tensor, FakeTensor)
    indices, data = (tensor._indices(), tensor._values()) if real else parts(mode, tensor)
    where = {} if device is None else {"device": device}
    copy = call(mode, aten._to_copy.default, indices, **where)
    if values.value_of(indices) is not None and isinstance(copy, FakeTensor):
        values.set_value(copy, values.value_of(indices).cpu(), values.is_drawn(indices))
    data = call(mode, aten._to_copy.default, data, dtype=kwargs.get("dtype"), **where)
    if not isinstance(data, FakeTensor):
        data = mode.hollow(data)
    return make(mode, copy if isinstance(copy, FakeTensor) else mode.hollow(copy), data, tensor.shape, tensor.is_coalesced())


def total(mode, func, args, kwargs):
    """_sparse_sum over dimensions: those that are left keep their indices, which are not coalesced."""
    tensor, dims = args[0], [d % args[0].dim() for d in args[1]]
    indices, data = parts(mode, tensor)
    count = indices.shape[0]
    inside = [d - count + 1 for d in dims if d >= count]
    if inside:
        data = call(mode, aten.sum.dim_IntList, data, inside)
    left = [d for d in range(count) if d not in dims]
    if not left:
        return call(mode, aten.sum.dim_IntList, data, [0])
    known = values.value_of(indices)
    rows = call(mode, aten.empty.memory_format, [len(left), indices.shape[1]], dtype=torch.int64, device=indices.fake_device)
    if known is not None:
        values.set_value(rows, known[left], values.is_drawn(indices))
    size = [n for d, n in enumerate(tensor.shape) if d not in dims]
    return make(mode, rows, data, size, False)


def coalesce(mode, func, args, kwargs):
    tensor = args[0]
    indices, data = parts(mode, tensor)
    if tensor.is_coalesced():
        return tensor
    known = values.value_of(indices)
    count = indices.shape[1]
    if count < 2:
        return make(mode, call(mode, aten.clone.default, indices), call(mode, aten.clone.default, data), tensor.shape, True)
    new = indices
    if known is not None:
        with mode.session.paused():
            unique = torch.unique(known, dim=1)
    one = indices.shape[0] == 1
    if one:
        flat = call(mode, aten.clone.default, indices)
    else:
        flat = call(mode, aten.arange.default, count, dtype=torch.int64, device=data.fake_device)
    order = [take(mode, data, 8 * count) for _ in range(2)]
    for size in (merge_sort_bytes(count), 1279 + rounded(4 * (-(-count // 4608) + 32))):
        scratch = take(mode, data, size)
        del scratch
    left = unique.shape[1] if known is not None else count
    out = call(mode, aten.empty.memory_format, [left, *data.shape[1:]], dtype=data.dtype, device=data.fake_device)
    if one:
        new = call(mode, aten.narrow.default, flat, 1, 0, left) if left != count else flat
    else:
        new = call(mode, aten.empty.memory_format, [indices.shape[0], left], dtype=torch.int64, device=data.fake_device)
    if known is not None:
        values.set_value(new, unique, values.is_drawn(indices))
    else:
        mode.session.drawn("coalesce")
    del order, flat
    return make(mode, new, out, tensor.shape, True)


def read_indices(mode, func, args, kwargs):
    return parts(mode, args[0])[0]


def read_values(mode, func, args, kwargs):
    return parts(mode, args[0])[1]


def same(mode, func, args, kwargs):
    """detach, alias: another tensor of the same indices and values."""
    indices, data = parts(mode, args[0])
    return make(mode, indices, data, args[0].shape, args[0].is_coalesced())


def clone(mode, func, args, kwargs):
    indices, data = parts(mode, args[0])
    node = torch._C._current_autograd_node() if mode.session.in_backward() else None
    dense = indices.is_contiguous() and data.is_contiguous()
    if node is not None and "AccumulateGrad" in node.name() and dense:
        return same(mode, func, args, kwargs)  # a gradient that nothing else holds is kept, not copied
    data = call(mode, aten.clone.default, data)
    return make(mode, call(mode, aten.clone.default, indices), data, args[0].shape, args[0].is_coalesced())


def transpose(mode, func, args, kwargs):
    """t, transpose: a copy whose two rows of indices are exchanged."""
    tensor = args[0]
    first, second = (0, 1) if len(args) < 3 else (args[1] % tensor.dim(), args[2] % tensor.dim())
    indices, data = parts(mode, tensor)
    known = values.value_of(indices)
    data = call(mode, aten.clone.default, data)
    indices = call(mode, aten.clone.default, indices)
    scratch = take(mode, data, 8 * indices.shape[1])
    del scratch
    size = list(tensor.shape)
    size[first], size[second] = size[second], size[first]
    if known is not None and max(first, second) < known.shape[0]:
        with mode.session.paused():
            rows = list(range(known.shape[0]))
            rows[first], rows[second] = rows[second], rows[first]
            values.set_value(indices, known[rows])
    return make(mode, indices, data, size, False)


def mask(mode, func, args, kwargs):
    """sparse_mask of a dense tensor: its product with a sparse tensor of ones."""
    dense, like = args[0], args[1]
    if dense.layout is COO:
        return same(mode, func, args, kwargs)
    indices, data = parts(mode, like)
    ones = call(mode, aten.ones.default, [1], dtype=dense.dtype, device=dense.fake_device)
    shape = [indices.shape[1], *dense.shape[indices.shape[0] :]]
    picked = call(mode, aten.empty.memory_format, shape, dtype=dense.dtype, device=dense.fake_device)
    indices = call(mode, aten.clone.default, indices)
    out = call(mode, aten.mul.Tensor, picked, ones)
    return make(mode, indices, out, dense.shape, like.is_coalesced())


def product(mode, func, args, kwargs):
    """addmm, _sparse_addmm and mm of a sparse and a dense matrix, in compressed rows with 32-bit indices."""
    held = None
    if func is aten.mm.default:
        matrix, dense = args[0], args[1]
        if dense.layout is COO or matrix.layout is not COO:
            return None
        held = call(mode, aten.zeros.default, [matrix.shape[0], dense.shape[1]], dtype=dense.dtype, device=dense.fake_device)
    else:
        matrix, dense = args[1], args[2]
    shape = [matrix.shape[0], dense.shape[1]]
    out = call(mode, aten.empty.memory_format, shape, dtype=dense.dtype, device=dense.fake_device)
    ready = coalesce(mode, aten._coalesce.default, (matrix,), {})
    count = parts(mode, ready)[0].shape[1]
    rows = take(mode, out, 4 * (shape[0] + 1))
    scratch = take(mode, out, 4 * count)
    del scratch
    columns = take(mode, out, 4 * count)
    copy = call(mode, aten.clone.default, out)
    scratch = take(mode, out, 2655)
    del scratch, copy, columns, rows, ready, held
    return out


def add(mode, func, args, kwargs):
    """add and add_: into a dense tensor in place, or two sparse ones one behind the other."""
    one, other = args[0], args[1]
    in_place = func._schema.name.endswith("_")
    if one.layout is not COO:
        return one if in_place else call(mode, aten.clone.default, one)
    if not is_sparse(other):
        return None
    pair = [parts(mode, t) for t in (one, other)]
    indices = call(mode, aten.cat.default, [p[0] for p in pair], 1)
    data = call(mode, aten.cat.default, [p[1] for p in pair], 0)
    return make(mode, indices, data, one.shape, False)


def scale(mode, func, args, kwargs):
    """mul and div by a number: the values change, the indices are copied or stay."""
    tensor, factor = args[0], args[1]
    if tensor.layout is not COO or is_sparse(factor):
        return None
    if func._schema.name.endswith("_"):
        return tensor
    indices, data = parts(mode, tensor)
    data = call(mode, func, data, factor)
    return make(mode, call(mode, aten.clone.default, indices), data, tensor.shape, tensor.is_coalesced())


def bag_backward(mode, args):
    """_embedding_bag_sparse_backward: the rows of the gradient, one for each index, are the values."""
    grad, indices, offset2bag, bag_size = args[0], args[1], args[3], args[4]
    weights, kind, sample, padding = args[6], args[8], args[10], args[11] if len(args) > 11 else -1
    data = call(mode, aten.index_select.default, grad, 0, offset2bag)
    if kind == 1:
        sizes = call(mode, aten._to_copy.default, bag_size, dtype=data.dtype)
        sizes = call(mode, aten.clamp_min.default, sizes, 1)
        sizes = call(mode, aten.index_select.default, call(mode, aten.unsqueeze.default, sizes, 1), 0, offset2bag)
        data = call(mode, aten.div_.Tensor, data, sizes)
    if isinstance(sample, torch.Tensor):
        data = call(mode, aten.mul_.Tensor, data, call(mode, aten.unsqueeze.default, sample, 1))
    if padding != -1:  # embedding_sparse_backward in native/Embedding.cpp
        kept = call(mode, aten.ne.Scalar, indices, padding)
        indices, data = call(mode, aten.index.Tensor, indices, [kept]), call(mode, aten.index.Tensor, data, [kept])
    rows = call(mode, aten.view.default, indices, [1, -1])
    known = values.value_of(indices)
    if known is not None:
        values.set_value(rows, known.reshape(1, -1), values.is_drawn(indices))
    return make(mode, rows, data, [weights, grad.shape[1]], False)


def dense(mode, func, args, kwargs):
    tensor = args[0]
    return call(mode, aten.zeros.default, list(tensor.shape), dtype=tensor.dtype, device=tensor.fake_device)


def from_dense(mode, func, args, kwargs):
    """to_sparse of a dense tensor: dense_to_sparse of native/TensorConversions.cpp."""
    tensor = args[0]
    wanted = args[1] if len(args) > 1 and isinstance(args[1], int) else None
    if tensor.layout is not torch.strided or kwargs.get("layout") not in (None, COO) or not tensor.dim():
        return None
    sparse_dim = tensor.dim() - (kwargs.get("dense_dim") or 0) if wanted is None else wanted
    rows = call(mode, aten.t.default, call(mode, aten.nonzero.default, tensor))
    known = values.value_of(rows)
    if sparse_dim < tensor.dim():
        rows = call(mode, aten.narrow.default, rows, 0, 0, sparse_dim)
        rows = call(mode, aten.unique_dim.default, rows, 1)[0]
        indices = rows if rows.is_contiguous() else call(mode, aten.clone.default, rows, memory_format=torch.contiguous_format)
    else:
        indices = call(mode, aten.clone.default, rows)
        if known is not None:
            values.set_value(indices, known, values.is_drawn(rows))
    places = [call(mode, aten.view.default, p, [-1]) for p in indices.unbind(0)] if indices.is_contiguous() else indices.unbind(0)
    data = call(mode, aten.clone.default, call(mode, aten.index.Tensor, tensor, list(places)))
    return make(mode, indices, data, tensor.shape, True)


def nothing(mode, func, args, kwargs):
    return args[0]


MAKE = {aten._sparse_coo_tensor_with_dims_and_tensors.default}
FROM_DENSE = {f: from_dense for f in (aten._to_sparse.default, aten._to_sparse.sparse_dim)}
RULES = {
    **{f: construct for f in MAKE},
    **FROM_DENSE,
    aten._to_copy.default: move,
    aten._sparse_sum.dim: total,
    aten._coalesce.default: coalesce,
    aten._indices.default: read_indices,
    aten.indices.default: read_indices,
    aten._values.default: read_values,
    aten.values.default: read_values,
    aten.detach.default: same,
    aten.alias.default: same,
    aten.clone.default: clone,
    aten.t.default: transpose,
    aten.transpose.int: transpose,
    aten.sparse_mask.default: mask,
    aten._sparse_addmm.default: product,
    aten.addmm.default: product,
    aten.mm.default: product,
    aten.add.Tensor: add,
    aten.add_.Tensor: add,
    aten.mul.Tensor: scale,
    aten.mul.Scalar: scale,
    aten.mul_.Tensor: scale,
    aten.mul_.Scalar: scale,
    aten.div.Tensor: scale,
    aten.div.Scalar: scale,
    aten.div_.Tensor: scale,
    aten.div_.Scalar: scale,
    aten._to_dense.default: dense,
    aten.zero_.default: nothing,
}


def run(mode, func, args, kwargs):
    """The result of an operator on sparse tensors, or None if there is no rule for it."""
    rule = RULES.get(func)
    return rule(mode, func, args, kwargs) if rule is not None else None
