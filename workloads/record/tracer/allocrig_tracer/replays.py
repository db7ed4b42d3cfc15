"""Gradient functions of views that were changed in place.

Autograd makes the gradient function of such a view again when it is needed next (VariableHooks::grad_fn in
csrc/autograd/variable.cpp). Of a tensor without a Python class it is AsStridedBackward, whatever views led to it; here
C++ makes those views again, one after another, from the base. Nobody holds what they return: that tells them from views
of the program's own.
"""
import threading
import weakref

import torch

from . import values

BASE, BETWEEN = "base", "between"


def geometry(tensor):
    return tensor.shape, tensor.stride(), tensor.storage_offset()


class Replays:
    def __init__(self):
        self.places = {}  # sequence number of a view that C++ made again -> BASE: it is the first; BETWEEN: a later one
        self.local = threading.local()

    def state(self):
        """Of this thread: views that were changed, and the views from the base of one of them that are being made."""
        local = self.local
        if not hasattr(local, "changed"):
            local.changed, local.chain, local.last, local.complete = [], [], None, False
        return local

    def before(self, func, args):
        """An operator is about to run. Its views are followed once one was changed."""
        local = self.state()
        if local.complete and local.last() is None:
            for number in local.chain:
                self.places[number] = BETWEEN if number != local.chain[0] else BASE
        local.complete = False
        if args and isinstance(args[0], torch.Tensor) and torch.is_grad_enabled() and values.changes_input(func):
            base = args[0]._base
            if base is not None:
                view, place = args[0], geometry(args[0])
                local.changed = [c for c in local.changed if c[0]() is not None and c[0]() is not view]
                local.changed.append((weakref.ref(view), weakref.ref(base), place))

    def after(self, args, out):
        """A view was made."""
        local = self.state()
        if not local.changed or not torch.is_grad_enabled() or not isinstance(out, torch.Tensor) or not args[0].requires_grad:
            return
        number = torch.autograd._get_sequence_nr() - 1
        if local.chain and local.last() is args[0]:
            local.chain.append(number)
        elif any(base() is args[0] for _, base, _ in local.changed):
            local.chain = [number]
        else:
            local.chain = []
            return
        local.last = weakref.ref(out)
        local.complete = any(view() is not None and place == geometry(out) for view, _, place in local.changed)
