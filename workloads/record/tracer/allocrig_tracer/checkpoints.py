"""`torch.save`, `torch.load` and pickle of tensors without data.

A saved tensor is its shape, strides, type, device and the value that the tracer keeps of it, if any. Tensors that share
a storage share one after loading. A file that a real program saved is read as it is; what goes to the card then loses
its data there.
"""

import threading

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import values

_loading = threading.local()  # of the running torch.load: `where`, its map_location, and `bases`, storages by their keys


def install(current):
    """Replaces the functions, once. `current` returns the running session or None."""
    if getattr(install, "done", False):
        return
    install.done = True
    _saving(current)
    _loads(current)
    _storages(current)
    torch.serialization.add_safe_globals([restored])


def restored(key, elements, dtype, device, size, stride, offset, requires_grad, is_parameter, value):
    """What pickle calls for a saved tensor: a new one on its device, or where map_location says."""
    device = _target(getattr(_loading, "where", None), device)
    bases = getattr(_loading, "bases", {})
    found = bases.get((key, dtype))
    if found is None:
        found = bases[key, dtype] = torch.empty(elements, dtype=dtype, device=device)
    out = found.detach().as_strided(size, stride, offset)
    if isinstance(out, FakeTensor):
        if value is not None:
            values.share_value(out, value)
        if is_parameter:
            out._is_param = True
    elif value is not None:
        out.copy_(value)
    if is_parameter and not isinstance(out, FakeTensor):
        return torch.nn.Parameter(out, requires_grad)
    return out.requires_grad_(requires_grad)


def _target(where, saved):
    """The device that map_location chooses for a storage that was saved from device `saved`."""
    if callable(where):
        chosen = where(torch.UntypedStorage(0), saved)
        index = getattr(chosen, "_card", None)
        return torch.device(saved) if chosen is None else torch.device("cpu" if index is None else f"cuda:{index}")
    return torch.device((where.get(saved, saved) if isinstance(where, dict) else where) or saved)


def _saving(current):
    reduce = FakeTensor.__reduce_ex__

    def reduced(self, protocol):
        session = current()
        if session is None or self.fake_mode is not session.mode.fake or self.layout is not torch.strided:
            return reduce(self, protocol)
        storage, value = self.untyped_storage(), values.value_of(self)
        elements = -(-storage.nbytes() // self.element_size())
        parts = tuple(self.shape), self.stride(), self.storage_offset(), self.requires_grad
        is_parameter = bool(getattr(self, "_is_param", False))
        value = None if value is None else value.detach()
        return restored, (storage._cdata, elements, self.dtype, str(self.fake_device), *parts, is_parameter, value)

    def copied(self):
        """copy.copy: another tensor of the same storage."""
        out = self.detach().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            out._is_param = True
        return out

    FakeTensor.__reduce_ex__ = reduced
    FakeTensor.__copy__ = copied


def _loads(current):
    load = torch.load

    def loaded(f, map_location=None, *args, **kwargs):
        _loading.where, _loading.bases = map_location, {}
        try:
            return load(f, map_location, *args, **kwargs)
        finally:
            _loading.where, _loading.bases = None, {}

    torch.load = torch.serialization.load = loaded


def _storages(current):
    """A storage that was read from a file and goes to the card keeps its bytes until a tensor is made of it."""
    storage_class = torch.UntypedStorage
    to, cuda, rebuild = storage_class.to, storage_class.cuda, torch._utils._rebuild_tensor

    def moved(self, *, device, non_blocking=False):
        session, device = current(), torch.device(device)
        if session is None or device.type != "cuda":
            return to(self, device=device, non_blocking=non_blocking)
        self._card = session.current_device().index if device.index is None else device.index
        return self

    def to_card(self, device=None, non_blocking=False):
        if current() is None:
            return cuda(self, device, non_blocking)
        index = isinstance(device, int)
        return moved(self, device=torch.device("cuda", device) if index else torch.device(device or "cuda"))

    def rebuilt(storage, offset, size, stride):
        untyped = storage._untyped_storage
        index = getattr(untyped, "_card", None)
        if index is None or current() is None:
            return rebuild(storage, offset, size, stride)
        bases = untyped.__dict__.setdefault("_bases", {})
        if storage.dtype not in bases:
            elements = untyped.nbytes() // storage.dtype.itemsize
            bases[storage.dtype] = rebuild(storage, 0, (elements,), (1,)).to(torch.device("cuda", index))
        return bases[storage.dtype].as_strided(size, stride, offset)

    share = storage_class.share_memory_
    storage_class.share_memory_ = lambda self: self if self.device.type == "meta" else share(self)  # as on a card
    storage_class.to, storage_class.cuda = moved, to_card
    torch._utils._rebuild_tensor = rebuilt
