"""Decisions that PyTorch's C++ code makes by `is_cuda`, made here for tensors that only Python knows to be on a card.

Each function repeats the conditions of PyTorch 2.11 for CUDA (named beside it) and calls the operator that a card
would run. Tensors on the CPU take PyTorch's own way.
"""

import contextlib
import functools
import os
import sys
from types import SimpleNamespace

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import after_import, attention, autocast, cudnn_meta, fast_path, kernels_cudnn, values

aten = torch.ops.aten
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def on_card(tensor):
    """Whether a tensor is on the card; also a DTensor of such tensors."""
    return not torch.compiler.is_compiling() and isinstance(tensor, torch.Tensor) and tensor.is_cuda


def install(current):
    """Puts the functions in place of PyTorch's, once."""
    if getattr(install, "done", False):
        return
    install.done = True
    cudnn_meta.install()
    functional = torch.nn.functional
    _dropout(functional)
    _assign(current)
    torch.batch_norm = _batch_norm(torch.batch_norm)
    if hasattr(torch, "rms_norm"):
        torch.rms_norm = functional_rms = _rms_norm(torch.rms_norm)
        torch._C._nn.rms_norm = functional_rms
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        setattr(torch._VF, name, _recurrent(name, getattr(torch._VF, name), current))
    attend = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = attention.function(attend, current)
    torch._C._nn.scaled_dot_product_attention = functional.scaled_dot_product_attention
    functional.linear = torch._C._nn.linear = _linear(torch._C._nn.linear)
    for name, widens in (("softmax", aten._softmax.default), ("log_softmax", aten._log_softmax.default)):
        for module in (torch, torch.Tensor):
            setattr(module, name, _softmax(getattr(module, name), widens))
    for module in (torch, torch.Tensor):
        module.cumprod = _cumprod(module.cumprod)
    functional.one_hot = torch._C._nn.one_hot = _one_hot(functional.one_hot)
    for name in ("lstm_cell", "gru_cell"):
        setattr(torch._VF, name, _cell(name, getattr(torch._VF, name)))
    torch.ctc_loss = _ctc_loss(torch.ctc_loss, current)
    _script(current)
    _checks(current)
    values.SPECIAL.update(fast_path.COMPOSED)
    fast_path.install(current)
    torch._use_cudnn_rnn_flatten_weight = lambda: True
    torch._cudnn_rnn_flatten_weight = _flatten_weight(current)
    after_import("torchvision.models.detection._utils", lambda: _detection(current))
    after_import("torchvision.models.detection.anchor_utils", lambda: _anchors(current))
    after_import("torchvision.models.detection.rpn", lambda: _proposals(current))
    after_import("torchvision.models.detection.roi_heads", lambda: _masks(current))
    after_import("transformers.generation.utils", lambda: _beams(current))
    after_import("transformers.utils.import_utils", lambda: _not_traced("transformers.utils.import_utils"))
    after_import("transformers.loss.loss_for_object_detection", lambda: _corners(current))


def _beams(current):
    """A search with beams goes on to its longest text: an open beam, whose score is not known, may improve on others."""
    mixin = sys.modules["transformers.generation.utils"].GenerationMixin
    plain = getattr(mixin, "_check_early_stop_heuristic", None)  # 4.50 and later
    if plain is not None:
        mixin._check_early_stop_heuristic = staticmethod(_assume(current, plain, gt=True))


def _corners(current):
    """The corners of boxes are in order: transformers checks that before it compares boxes, whose values may be drawn."""
    losses = sys.modules["transformers.loss.loss_for_object_detection"]
    losses.generalized_box_iou = _assume(current, losses.generalized_box_iou, ge=True)


def _not_traced(library):
    """transformers skips its checks of masks by value (`all()`, packed sequences) for fake tensors: on a card it makes
    them. A graph that PyTorch compiles is known by other signs."""
    if hasattr(sys.modules[library], "is_fake_tensor"):  # 5.0 and later
        sys.modules[library].is_fake_tensor = lambda tensor: False


def _assume(current, function, **truths):
    """`function` as it is, where comparisons of tensors that are not known have these results."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        session = current()
        if session is None:
            return function(*args, **kwargs)
        before, session.local.assumed = getattr(session.local, "assumed", {}), truths
        try:
            return function(*args, **kwargs)
        finally:
            session.local.assumed = before

    return call


def _checks(current):
    """Checks of values pass: the support of distributions, the windows of istft, whose sums are not zero."""
    distribution = torch.distributions.Distribution
    passes = dict.fromkeys(("eq", "ge", "gt", "le", "lt"), True)
    for name in ("__init__", "_validate_sample"):
        setattr(distribution, name, _assume(current, getattr(distribution, name), **passes))
    torch.istft = torch.functional.istft = torch.Tensor.istft = _assume(current, torch.istft, lt=False)


def _softmax(plain, widens):
    """native/SoftMax.cpp: from float16 to float32 without a copy."""

    @functools.wraps(plain)
    def softmax(input, dim, dtype=None, **rest):
        if dtype == torch.float32 and not rest and on_card(input) and input.dtype == torch.float16 and isinstance(dim, int):
            return widens(input, dim, True)
        return plain(input, dim, dtype=dtype, **rest) if dtype is not None else plain(input, dim, **rest)

    return softmax


class _Product(torch.autograd.Function):
    """cumprod_backward in csrc/autograd/FunctionsManual.cpp without zeros in its input; for tensors with a Python
    class it makes every element's gradient by itself."""

    @staticmethod
    def forward(ctx, input, dim):
        out = aten.cumprod.default(input, dim)
        ctx.save_for_backward(input, out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, gradient):
        input, out = ctx.saved_tensors
        weighted = out * gradient
        zero = input == 0
        zero.any().item()
        return weighted.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim).div(input), None


def _cumprod(plain):
    @functools.wraps(plain)
    def cumprod(input, dim, *, dtype=None, **rest):
        if (rest or dtype or not on_card(input) or not (torch.is_grad_enabled() and input.requires_grad)
                or input.dtype not in (torch.float32, torch.float64) or input.shape[dim] < 2
                or torch._C._functorch.peek_interpreter_stack() is not None):
            return plain(input, dim, dtype=dtype, **rest)
        return _Product.apply(input, dim)

    return cumprod


def _one_hot(plain):
    """native/Onehot.cpp: zeros and a scatter; for tensors with a Python class it compares with a range."""

    @functools.wraps(plain)
    def one_hot(tensor, num_classes=-1):
        if not on_card(tensor) or tensor.numel() == 0:
            return plain(tensor, num_classes)
        count = int(tensor.max()) + 1 if num_classes == -1 else num_classes
        return torch.zeros((*tensor.shape, count), dtype=tensor.dtype, device=tensor.device).scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _detection(current):
    """What torchvision's detectors find out about boxes that are not known: they are larger than the least size, and
    most of them meet no object."""
    boxes, utils = sys.modules["torchvision.ops.boxes"], sys.modules["torchvision.models.detection._utils"]
    boxes.remove_small_boxes = _if_unknown(0, boxes.remove_small_boxes, _assume(current, boxes.remove_small_boxes, ge=True))
    call = utils.Matcher.__call__
    utils.Matcher.__call__ = _if_unknown(1, call, _assume(current, call, lt=True, ge=False))
    decode = utils.BoxCoder.decode

    @functools.wraps(decode)
    def decoded(self, rel_codes, boxes):
        """A detector at its start moves no box, as far as is known."""
        out = decode(self, rel_codes, boxes)
        session, known = current(), [values.value_of(b) for b in boxes]
        if session is not None and isinstance(out, FakeTensor) and values.value_of(out) is None and out.dim() == 3 and None not in known:
            with session.paused():
                values.set_value(out, torch.cat(known)[:, None].expand(out.shape).to(out.dtype), True)
        return out

    utils.BoxCoder.decode = decoded


def _if_unknown(at, plain, assumed):
    """`assumed` in place of `plain`, where the value of the argument number `at` is not known."""

    @functools.wraps(plain)
    def call(*args, **kwargs):
        return (plain if at < len(args) and values.value_of(args[at]) is not None else assumed)(*args, **kwargs)

    return call


def _anchors(current):
    """The values of anchors, which are too many to be kept otherwise."""
    generator = sys.modules["torchvision.models.detection.anchor_utils"].AnchorGenerator
    forward = generator.forward

    @functools.wraps(forward)
    def anchors(self, image_list, feature_maps):
        out = forward(self, image_list, feature_maps)
        session, cells = current(), self.cell_anchors
        known = [values.value_of(c) for c in cells]
        if session is not None and isinstance(out[0], FakeTensor) and None not in known:
            with session.paused():
                maps = [torch.zeros(()).expand(f.shape) for f in (*feature_maps, image_list.tensors)]
                images = SimpleNamespace(tensors=maps.pop(), image_sizes=image_list.image_sizes)
                self.cell_anchors = known
                try:
                    drawn = forward(self, images, maps)
                finally:
                    self.cell_anchors = cells
                for fake, real in zip(out, drawn):
                    values.set_value(fake, real.to(fake.dtype), True)
        return out

    generator.forward = anchors


def _proposals(current):
    """The scores of anchors are drawn at random. The best of the anchors at hand overlap as on a card."""
    network = sys.modules["torchvision.models.detection.rpn"].RegionProposalNetwork
    plain = network.filter_proposals

    @functools.wraps(plain)
    def filter_proposals(self, proposals, objectness, *rest):
        session = current()
        if session is not None and values.value_of(proposals) is not None and values.value_of(objectness) is None:
            with session.paused():
                drawn = torch.randn(tuple(objectness.shape), generator=session.generator)
                values.set_value(objectness, drawn.to(objectness.dtype), True)
        return plain(self, proposals, objectness, *rest)

    network.filter_proposals = filter_proposals


def _masks(current):
    """Where torchvision puts the mask of a box that is not known: the box is drawn, within the picture."""
    heads = sys.modules["torchvision.models.detection.roi_heads"]
    paste = heads.paste_mask_in_image

    def pasted(mask, box, height, width):
        session = current()
        if session is not None and values.value_of(box) is None:
            with session.paused():
                ends = torch.rand(2, 2, generator=session.generator).sort(0).values * torch.tensor([width, height])
                values.set_value(box, ends.flatten().to(box.dtype), True)
        return paste(mask, box, height, width)

    heads.paste_mask_in_image = pasted


def _assign(current):
    """python_variable_indexing.cpp, THPVariable_setitem: a number that is assigned to a part of a tensor on a card, or
    of one of the host without data, becomes a tensor on the CPU."""
    assign = torch.Tensor.__setitem__

    def setitem(self, index, value):
        session = current()
        if session is not None:
            index = _brought(self, index)
        if session is None or isinstance(value, torch.Tensor) or type(self) in (torch.Tensor, torch.nn.Parameter):
            return assign(self, index, value)
        before, session.local.assigns = getattr(session.local, "assigns", False), True
        try:
            return assign(self, index, value)
        finally:
            session.local.assigns = before

    torch.Tensor.__setitem__ = setitem
    get = torch.Tensor.__getitem__
    FakeTensor.__getitem__ = lambda self, index: get(self, index if current() is None else _brought(self, index))


def _brought(tensor, index):
    """sequenceToVariable in python_variable_indexing.cpp: lists, ranges and arrays of numbers as indices become tensors
    beside the tensor, which the derivative keeps."""

    def numbers(part):
        if type(part).__module__ == "numpy":
            return getattr(part, "ndim", 0) > 0 and part.dtype.kind in "iub"
        return isinstance(part, (list, range)) and len(part) > 0 and all(isinstance(n, int) or numbers(n) for n in part)

    if not on_card(tensor):
        return index
    if isinstance(index, tuple):
        return tuple(torch.tensor(part, device=tensor.device) if numbers(part) else part for part in index)
    return torch.tensor(index, device=tensor.device) if numbers(index) else index


def _script(current):
    """TorchScript's interpreter would decide by `meta`: functions and modules run as the Python code that they are."""
    script, trace = torch.jit.script, torch.jit.trace

    def scripted(obj, *args, **kwargs):
        own = sys._getframe(1).f_code.co_filename.startswith(TORCH)  # PyTorch scripts derivatives
        if current() is None or own or isinstance(obj, type):
            return script(obj, *args, **kwargs)
        current().unsure("torch.jit.script (runs as Python code)", 0, 0)
        return with_save(obj)

    def traced(func, *args, **kwargs):
        return trace(func, *args, **kwargs) if current() is None else with_save(func)

    def with_save(obj):
        if not hasattr(obj, "save"):
            with contextlib.suppress(AttributeError):  # a method or a list takes none
                obj.save = save_nothing
        return obj

    torch.jit.script, torch.jit.trace = scripted, traced
    save = torch.jit.save
    torch.jit.save = lambda m, f, *args, **kwargs: save(m, f, *args, **kwargs) if current() is None else save_nothing(f)
    torch.jit.freeze = torch.jit.optimize_for_inference = _same_module(current, torch.jit.freeze)


def save_nothing(file, *args, **kwargs):
    """A compiled program is saved to an empty file."""
    if not hasattr(file, "write"):
        with open(file, "wb"):
            pass


def _same_module(current, plain):
    return lambda module, *args, **kwargs: plain(module, *args, **kwargs) if current() is None else module


def _dropout(functional):
    """native/Dropout.cpp: a card runs the fused kernel, which returns a mask as well."""
    plain, in_place = functional.dropout, torch.dropout_

    def dropout(input, p=0.5, training=True, inplace=False):
        if not on_card(input) or inplace or not training or not 0 < p < 1 or input.numel() == 0:
            return plain(input, p, training, inplace)
        return attention.first(torch.native_dropout(input, p, True))

    def low(input, p, train):
        return dropout(input, p, train) if on_card(input) else original(input, p, train)

    original = torch.dropout
    functional.dropout = dropout
    torch.dropout = low
    torch.dropout_ = in_place


def cudnn_batch_norm_serves(input, weight, bias, mean, var, training, eps):
    """native/Normalization.cpp, _select_batch_norm_backend."""
    if not torch.backends.cudnn.enabled or weight is None or bias is None:
        return False
    if torch.bfloat16 in (input.dtype, weight.dtype) or input.dtype == torch.half and weight.dtype != torch.float32:
        return False
    if input.dim() < 3 or eps < 1e-5:
        return False
    if (mean is None or var is None) and not training:
        return False
    return input.shape[0] <= (880801 if training else 65535) and input.numel() < 1 << 31


def _batch_norm(plain):
    def batch_norm(input, weight, bias, mean, var, training, momentum, eps, cudnn_enabled):
        if not on_card(input):
            return plain(input, weight, bias, mean, var, training, momentum, eps, cudnn_enabled)
        if cudnn_enabled and cudnn_batch_norm_serves(input, weight, bias, mean, var, training, eps):
            layout = torch.channels_last if _channels_last(input) else torch.contiguous_format
            input = input.contiguous(memory_format=layout) if input.dim() == 4 else input.contiguous()
            return attention.first(torch.cudnn_batch_norm(input, weight, bias, mean, var, training, momentum, eps))
        return attention.first(torch.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps))

    return batch_norm


def _channels_last(tensor):
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def _rms_norm(plain):
    """native/layer_norm.cpp: a card runs the fused kernel unless the types differ."""

    def rms_norm(input, normalized_shape, weight=None, eps=None):
        if not on_card(input) or (weight is not None and weight.dtype != input.dtype) or not hasattr(torch, "_fused_rms_norm"):
            return plain(input, normalized_shape, weight, eps)
        return attention.first(torch._fused_rms_norm(input, list(normalized_shape), weight, eps))

    return rms_norm


def _ctc_loss(plain, current):
    """native/LossCTC.cpp: lengths become numbers on the host; the mean divides by a copy of them in the type of the losses."""

    def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
        mean = reduction == 1 and on_card(log_probs)
        if on_card(log_probs):
            lengths = []
            for given in (input_lengths, target_lengths):
                with current().paused():
                    real = given if isinstance(given, torch.Tensor) else torch.tensor(given)
                if not isinstance(real, FakeTensor):
                    fake = current().mode.hollow(real, log_probs.device)
                    values.set_value(fake, real)
                    real = fake
                lengths.append(real)
            input_lengths, target_lengths = lengths
        losses = plain(log_probs, targets, input_lengths, target_lengths, blank, 0 if mean else reduction, zero_infinity)
        if not mean:
            return losses
        count = torch.ones(target_lengths.numel(), dtype=losses.dtype).to(losses.device)
        return (losses / count.clamp_min(1)).mean()

    return ctc_loss


def _linear(plain):
    """native/Linear.cpp: the bias of a product with more than two dimensions that do not lie in order is added in place,
    but not to a subclass of Tensor."""

    def linear(input, weight, bias=None):
        if bias is None or not on_card(input) or input.dim() < 3 or input.is_contiguous() or type(weight) not in FAKES:
            return plain(input, weight, bias)
        if torch.is_autocast_enabled("cuda"):
            input, weight, bias = autocast.casts((input, weight, bias), torch.get_autocast_dtype("cuda"))
        with torch._C._ExcludeDispatchKeyGuard(autocast.KEY):
            return plain(input, weight, bias) if input.is_contiguous() else torch.matmul(input, weight.t()).add_(bias)

    return linear


FAKES = (FakeTensor, torch.nn.Parameter)


def _cell(name, plain):
    """native/RNN.cpp: the cells of nn.LSTMCell and nn.GRUCell are two products and one kernel on a card."""
    operator = {"lstm_cell": aten._thnn_fused_lstm_cell, "gru_cell": aten._thnn_fused_gru_cell}[name]

    def cell(input, state, w_ih, w_hh, b_ih=None, b_hh=None):
        if not on_card(input):
            return plain(input, state, w_ih, w_hh, b_ih, b_hh)
        hidden = state[0] if name == "lstm_cell" else state
        last = state[1] if name == "lstm_cell" else state
        gates = torch.matmul(input, w_ih.t()), torch.matmul(hidden, w_hh.t())
        out = operator(*gates, last, b_ih, b_hh)
        return (out[0], out[1]) if name == "lstm_cell" else out[0]

    return cell


MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}


def _recurrent(name, plain, current):
    """native/cudnn/RNN.cpp: the layers of nn.RNN, nn.LSTM and nn.GRU are one operator of cuDNN."""

    def recurrent(input, *rest):
        packed = isinstance(rest[0], torch.Tensor) and len(rest) > 7 and isinstance(rest[2], (list, tuple))
        if not on_card(input) or not torch.backends.cudnn.enabled:
            return plain(input, *rest)
        if packed:
            sizes, states, weights, biases, layers, dropout, training, both = rest
            batch_first, batch_sizes = False, [int(n) for n in sizes]
        else:
            states, weights, biases, layers, dropout, training, both, batch_first = rest
            batch_sizes = []
        hidden, cell = states if name == "lstm" else (states, None)
        projected = weights[0].shape[0] // 4 if name == "lstm" else 0
        size = hidden.shape[2]
        project = size if name == "lstm" and size != projected else 0
        size = projected if project else size
        per_layer = (4 if biases else 2) + (1 if project else 0)
        buffer = getattr(weights[0], "_flat_buffer", None)
        if dropout > 0 and training:  # before autocast makes its weights
            device, session = input.device.index, current()
            session.ledger.keep(("cudnn_dropout", device), kernels_cudnn.sizes.DROPOUT_STATE, device=device,
                                stream=session.stream_now(), tag="cudnn_dropout")  # fmt: skip
        out = torch._cudnn_rnn(
            input, list(weights), per_layer, buffer, hidden, cell, MODES[name], size, project, layers, batch_first,
            dropout, training, both, batch_sizes, None,
        )  # fmt: skip
        return (out[0], out[1], out[2]) if name == "lstm" else (out[0], out[1])

    return recurrent


def _flatten_weight(current):
    """All weights of an RNN move into one buffer: cuDNN wants them there."""

    def flatten(weights, per_layer, input_size, mode, hidden, project, layers, batch_first, both):
        session = current()
        elements = kernels_cudnn.sizes.rnn_weights(mode, input_size, hidden, project, layers, both)
        flat = torch.zeros(elements, dtype=weights[0].dtype, device=weights[0].device)
        at = 0
        for weight in weights:
            part = flat.narrow(0, at, weight.numel()).view(weight.shape)
            at += weight.numel()
            weight.data = part
            weight._flat_buffer = flat
        session.drawn("RNN weights in one buffer") if os.environ.get("ALLOCRIG_TRACE_DEBUG") else None
        return flat

    return flatten
