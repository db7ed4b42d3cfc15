"""Values of tensors after collectives: the other ranks are assumed to hold what this rank holds.

A gathered value is this rank's own, once for each rank; a sum is this rank's value times the number of ranks; of an
all-to-all this rank gets from each rank what it would send to itself.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import values


def give_value(session, target, value):
    """Writes a value to a tensor: to its kept copy, so that views of it follow, or to itself if it is real."""
    kept = values.value_of(target)
    if not isinstance(target, FakeTensor):
        if value is not None:
            with session.paused(), torch.no_grad():
                target.copy_(value.reshape(target.shape))
        return
    if value is None or value.numel() != target.numel() or not values.keeps(target):
        values.set_value(target, None)
    else:
        with session.paused(), torch.no_grad():
            value = value.reshape(target.shape).to(target.dtype)
            if kept is not None and kept.shape == value.shape:
                kept.copy_(value)
            else:
                values.set_value(target, value.clone())


def reduced(session, value, ranks, redop):
    """The reduction of a value that all ranks hold."""
    if value is None or redop.upper() not in ("SUM", "PRODUCT"):
        return value
    with session.paused(), torch.no_grad():
        return value * ranks if redop.upper() == "SUM" else value**ranks


def flat_value(session, tensors):
    """The values of several tensors in one, or None."""
    found = [values.value_of(t) for t in tensors]
    if any(v is None for v in found) or not found:
        return None
    with session.paused():
        return torch.cat([v.reshape(-1) for v in found])


def copies(session, value, count):
    if value is None:
        return None
    with session.paused():
        return value.reshape(-1).repeat(count)


def piece(session, value, rank, ranks, count=1):
    """What every rank's copy of a value has for this rank, `count` times. None if it does not divide."""
    if value is None or value.numel() % ranks:
        return None
    with session.paused():
        return value.reshape(ranks, -1)[rank].repeat(count)


def set_values(groups, kind, group, outs, inputs, peer):
    """Values of the outputs: see the head of this file."""
    session, ranks, rank = groups.session, group.size(), group.rank()
    if kind in ("all_reduce", "reduce"):
        for t in outs:
            give_value(session, t, reduced(session, values.value_of(t), ranks, groups.redop))
        return
    if kind in ("broadcast", "send", "barrier"):
        return
    if kind == "recv":
        for t in outs:
            give_value(session, t, None)
        return
    if kind == "scatter":
        for t in outs:
            give_value(session, t, values.value_of(inputs[rank]) if len(inputs) == ranks else None)
        return
    total = sum(t.numel() for t in outs)
    value = flat_value(session, inputs)
    if kind in ("all_gather", "gather"):
        full = copies(session, value, ranks)
    elif kind == "all_to_all":
        full = piece(session, value, rank, ranks, ranks)
    else:
        full = reduced(session, piece(session, value, rank, ranks), ranks, groups.redop)
    at = 0
    for t in outs:
        part = full[at : at + t.numel()] if full is not None and full.numel() == total else None
        at += t.numel()
        give_value(session, t, part)
