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


class Replays:
    def __init__(self):
        self.places = {}  # sequence number of a view that C++ made again -> BASE: it is the first; BETWEEN: a later one
        self.local = threading.local()

    def state(self):
        """Of this thread: tensors that were changed, themselves or in a view, and the views from one of them that are being made."""
        local = self.local
        if not hasattr(local, "changed"):
            local.changed, local.chain, local.last, local.made = weakref.WeakValueDictionary(), [], None, False
        return local

    def before(self, func, args):
        """An operator is about to run. Views of a tensor are followed once it was changed: then all that it has are stale."""
        local = self.state()
        if local.made and local.last() is None:
            for number in local.chain:
                self.places[number] = BETWEEN if number != local.chain[0] else BASE
        local.made = False
        if args and isinstance(args[0], torch.Tensor) and torch.is_grad_enabled() and values.changes_input(func):
            base = args[0] if args[0]._base is None else args[0]._base
            local.changed[id(base)] = base

    def after(self, func, args, out):
        """A view was made."""
        local = self.state()
        if not local.changed or not torch.is_grad_enabled() or not isinstance(out, torch.Tensor) or not args[0].requires_grad:
            return
        if func is torch.ops.aten.detach.default:  # it has no gradient function
            return
        number = torch.autograd._get_sequence_nr() - 1
        if local.chain and local.last() is args[0]:
            local.chain.append(number)
        elif local.changed.get(id(args[0])) is args[0]:
            local.chain = [number]
        else:
            local.chain = []
            return
        local.last, local.made = weakref.ref(out), True
