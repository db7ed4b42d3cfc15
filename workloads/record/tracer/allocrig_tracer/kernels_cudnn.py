"""What convolutions, recurrent networks and batch norm on cuDNN allocate besides their outputs.

plan(func, args, kwargs, outs, ctx) and known(func) have the interface of kernels.py, and these steps more:

    ("unsure", LOW, HIGH)   the bytes of the last take are not certain; they are between these two
    ("probe", BYTES, WHAT)  a take that may fail: the program goes on with less
    ("probe", BYTES, WHAT, CHOICE, SIZES)  the same; SIZES are tried one after another, and CHOICE remembers the last
    ("empty_cache",)        cached memory is released to the device

The order of requests is that of PyTorch 2.11 (aten/src/ATen/native/Convolution.cpp, cudnn/ConvShared.cpp,
cudnn/Conv_v8.cpp, cudnn/RNN.cpp, cudnn/BatchNorm.cpp); sizes are those of cudnn_plans.py and cudnn_sizes.py.
kernels/CUDNN.md has the residuals.

A search (torch.backends.cudnn.benchmark) takes one workspace for all trials, as large as the largest plan asks,
frees it, releases the cache, and runs the fastest of the first ten plans. Each thread searches for itself.
"""
import torch

from . import cudnn_plans as plans
from . import cudnn_sizes as sizes
from .kernels_shape import suggests_channels_last

SURE = 1 << 20  # a range below so many bytes is not reported
NAMES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class View:
    """Shape, strides and element size of a tensor, and what C++ decides by them."""

    def __init__(self, shape, strides, size):
        self.shape, self.strides, self.size = list(shape), list(strides), size
        self.bytes = plans.product(self.shape) * size

    @classmethod
    def of(cls, tensor):
        return cls(tensor.shape, tensor.stride(), tensor.element_size())

    def flat_2d(self):
        """view1d_as_2d of native/Convolution.cpp."""
        if len(self.shape) != 3:
            return self
        last = self.shape[2] * self.strides[2]
        return View(self.shape[:2] + [1] + self.shape[2:], self.strides[:2] + [last] + self.strides[2:], self.size)

    def contiguous(self, last):
        packed = plans.library.packed_strides(self.shape, last)
        return self.bytes == 0 or all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, packed))

    def suggests_last(self):
        return suggests_channels_last(self.shape, self.strides)

    def packed(self, last):
        return View(self.shape, plans.library.packed_strides(self.shape, last), self.size)


class Steps:
    """A plan that is being written."""

    def __init__(self):
        self.list, self.takes = [], 0

    def out(self, index):
        self.list.append(("out", index))

    def doubt(self, size, low, high):
        """The bytes of the next take are between low and high. Returns size."""
        if high - low >= SURE:
            self.list.append(("unsure", low, high))
        return size

    def take(self, size):
        """Takes bytes and returns the number of the take, or None for 0 bytes."""
        if size <= 0:
            return None
        self.list.append(("take", size))
        self.takes += 1
        return self.takes - 1

    def probe(self, size, what="search", *plans):
        """As take; if there is no memory, the program goes on without it or with another size."""
        number = self.take(size)
        if number is not None:
            self.list[-1] = ("probe", size, what, *plans)
        return number

    def give(self, number):
        if number is not None:
            self.list.append(("give", number))

    def copy(self, view, last):
        """contiguous(): (the tensor to go on with, number of the take of the copy)."""
        if view.contiguous(last):
            return view, None
        return view.packed(last), self.take(view.bytes)

    def extend(self, others, first_out):
        """The steps of another kernel whose output is output first_out here."""
        base = self.takes
        for step in others:
            if step[0] == "out":
                self.out(first_out)
            elif step[0] == "take":
                self.take(step[1])
            elif step[0] == "probe":
                self.probe(*step[1:])
            elif step[0] == "give":
                self.give(base + step[1])
            else:
                self.list.append(step)
        given = {s[1] for s in self.list if s[0] == "give"}
        for number in range(base, self.takes):
            if number not in given:
                self.give(number)


# Convolutions

def second_derivative():
    """Whether the derivative of a convolution's derivative runs."""
    node = torch._C._current_autograd_node()
    return node is not None and node.name().startswith("ConvolutionBackwardBackward")


searched = set()  # (thread, shape) that a search has served


def expand(values, dims):
    values = list(values)
    return values * dims if len(values) == 1 else values


class Convolution:
    """Arguments of a convolution, and the kernel that serves it."""

    def __init__(self, x, w, stride, padding, dilation, transposed, output_padding, groups, dtype):
        spatial = len(x.shape) - 2
        self.stride, self.padding, self.dilation, self.output_padding = (
            expand(v, spatial) for v in (stride, padding, dilation, output_padding))
        if spatial == 1:
            self.stride, self.padding, self.dilation, self.output_padding = (
                [1] + self.stride, [0] + self.padding, [1] + self.dilation, [0] + self.output_padding)
        self.made = x.bytes if spatial == 1 and not x.contiguous(False) else 0  # no NHWC for permuted sequences
        self.x, self.w = (x.packed(False) if self.made else x).flat_2d(), w.flat_2d()
        self.transposed, self.groups, self.dtype = bool(transposed), groups, dtype
        self.last = dtype != "float64" and (self.x.suggests_last() or self.w.suggests_last())

    def backend(self, ctx):
        """ConvParams of native/Convolution.cpp: use_cudnn, use_cudnn_depthwise, is_depthwise."""
        if self.x.bytes == 0 or self.w.bytes == 0:
            return "empty"
        padded = any(o >= max(s, d) for o, s, d in zip(self.output_padding, self.stride, self.dilation))
        cudnn = torch.backends.cudnn.enabled and self.dtype is not None and not padded
        x, w = self.x.shape, self.w.shape
        if not self.transposed and self.groups > 1 and x[1] == self.groups and w[0] % x[1] == 0:
            if cudnn and (self.last or self.depthwise_in_cudnn()):
                return "cudnn"
            return "depthwise2d" if len(x) == 4 else "depthwise3d"
        return "cudnn" if cudnn else "other"

    def depthwise_in_cudnn(self):
        x, w, stride = self.x.shape, self.w.shape, self.stride
        square = stride[0] == stride[-1] or x[2] == 1
        if self.dtype != "float16" or len(x) != 4 or any(d != 1 for d in self.dilation) or not square or x[1] < 32:
            return False
        if x[2] == 1 and stride[1] == 1:
            return True
        if w[2] != w[3] or w[3] not in (1, 3, 5) or x[3] < 7 or stride[1] not in (1, 2):
            return False
        if stride[1] == 1:
            return True
        if x[0] == 1:
            return w[3] != 1 or x[3] <= 28
        if w[3] == 1:
            return x[0] <= 16 and x[1] >= 128 and x[3] <= 7
        return x[1] >= 512 or (x[1] >= 256 and x[3] >= 28)

    def workspace(self, steps, operation, x, w, y, last, ctx):
        """The workspace of one operation of cuDNN, and before it that of a search."""
        deterministic = bool(ctx.deterministic)
        shape = plans.Shape(operation, tuple(x), tuple(w), tuple(y), tuple(self.stride), tuple(self.padding),
                            tuple(self.dilation), self.groups, self.dtype, last, deterministic,
                            bool(torch.backends.cudnn.allow_tf32))
        card = getattr(getattr(getattr(ctx, "session", None), "card", None), "name", "")
        answer = plans.Source.of(card, ctx.sm).ask(shape, bool(ctx.benchmark))
        if not ctx.benchmark:
            size = steps.doubt(*answer[:3])
            if answer.then:  # run_single_conv and try_configs of Conv_v8.cpp; the plan that ran is kept
                steps.give(steps.probe(size, "workspace", (ctx.thread, shape), answer.then))
                return
        else:
            key = (ctx.thread, shape)
            if key not in searched:
                searched.add(key)
                if answer.largest:
                    steps.give(steps.probe(answer.largest))
                steps.list.append(("empty_cache",))
            size = steps.doubt(*answer.chosen)
        steps.give(steps.probe(size, "workspace"))  # without memory for it, PyTorch runs the next plan


def convolution(args, kwargs, outs, ctx):
    x, w, bias, stride, padding, dilation, transposed, output_padding, groups = args[:9]
    return forward(View.of(x), View.of(w), stride, padding, dilation, transposed, output_padding, groups,
                   NAMES.get(x.dtype), outs, ctx)


def forward(x, w, stride, padding, dilation, transposed, output_padding, groups, dtype, outs, ctx):
    c = Convolution(x, w, stride, padding, dilation, transposed, output_padding, groups, dtype)
    steps, backend = Steps(), c.backend(ctx)
    if backend == "empty":
        return None
    if backend == "other":
        raise ValueError("a convolution outside cuDNN")
    whole = steps.take(c.made)
    if backend != "cudnn":
        _, copy = steps.copy(c.x, False)
        steps.out(0)
        _, of_weight = steps.copy(c.w, False)
        steps.give(of_weight)
        steps.give(copy)
        steps.give(whole)
        return steps.list
    early = None
    if second_derivative() and not c.w.contiguous(False):  # _convolution_double_backward copies it itself
        early, c.w = steps.take(c.w.bytes), c.w.packed(False)
    x, copy = steps.copy(c.x, c.last)
    steps.out(0)
    _, of_weight = steps.copy(c.w, c.last)
    out = list(outs[0].shape)
    out = out[:2] + [1] + out[2:] if len(out) == 3 else out
    if c.transposed:
        c.workspace(steps, plans.BACKWARD_INPUT, out, c.w.shape, x.shape, c.last, ctx)
    else:
        c.workspace(steps, plans.FORWARD, x.shape, c.w.shape, out, c.last, ctx)
    for number in (of_weight, copy, early, whole):
        steps.give(number)
    return steps.list


def cudnn_convolution(args, kwargs, outs, ctx):
    x, w, padding, stride, dilation, groups = args[:6]
    return forward(View.of(x), View.of(w), stride, padding, dilation, False, [0], groups, NAMES.get(x.dtype), outs, ctx)


def cudnn_convolution_transpose(args, kwargs, outs, ctx):
    x, w, padding, output_padding, stride, dilation, groups = args[:7]
    return forward(View.of(x), View.of(w), stride, padding, dilation, True, output_padding, groups, NAMES.get(x.dtype),
                   outs, ctx)


def cudnn_convolution_relu(args, kwargs, outs, ctx):
    x, w, _, stride, padding, dilation, groups = args[:7]
    return forward(View.of(x), View.of(w), stride, padding, dilation, False, [0], groups, NAMES.get(x.dtype), outs, ctx)


def convolution_backward(args, kwargs, outs, ctx):
    gradient, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask = args[:11]
    c = Convolution(View.of(x), View.of(w), stride, padding, dilation, transposed, output_padding, groups,
                    NAMES.get(x.dtype))
    g = View.of(gradient).flat_2d()
    steps, backend = Steps(), c.backend(ctx)
    position, count = {}, 0
    for i, wanted in enumerate(mask):
        if wanted:
            position[i], count = count, count + 1
    if backend == "empty":
        return None
    if backend == "other":
        raise ValueError("a convolution outside cuDNN")
    whole = steps.take(c.made)
    if backend != "cudnn":
        depthwise_backward(c, g, steps, position, backend)
    else:
        cudnn_backward(c, g, steps, position, ctx)
    if 2 in position:
        steps.extend(bias_sum(gradient, outs[position[2]], ctx), position[2])
    steps.give(whole)
    return steps.list


def depthwise_backward(c, g, steps, position, backend):
    if backend == "depthwise3d":  # conv_depthwise3d_backward_cuda makes both results before it copies
        for i in sorted(position.keys() & {0, 1}):
            steps.out(position[i])
        _, copy = steps.copy(g, False)
        for i, view in ((0, c.w), (1, c.x)):
            if i in position:
                steps.give(steps.copy(view, False)[1])
    else:
        g, copy = steps.copy(g, False)
        _, of_x = steps.copy(c.x, False) if 1 in position else (None, None)
        for i in (1, 0):
            if i in position:
                steps.out(position[i])
            if i == 1:
                steps.give(of_x)
    steps.give(copy)


def cudnn_backward(c, g, steps, position, ctx):
    x, of_x = steps.copy(c.x, c.last) if 1 in position else (c.x, None)
    of_gradient = None
    if c.transposed:
        g, of_gradient = steps.copy(g, x.suggests_last())
    elif g.suggests_last() != x.suggests_last():
        g, of_gradient = g.packed(x.suggests_last()), steps.take(g.bytes)
    if 0 in position:
        last = c.dtype != "float64" and (g.suggests_last() or c.w.suggests_last())
        steps.out(position[0])
        _, of_weight = steps.copy(c.w, last)
        whole, of_whole = steps.copy(g, last)
        if c.transposed:
            c.workspace(steps, plans.FORWARD, whole.shape, c.w.shape, x.shape, last, ctx)
        else:
            c.workspace(steps, plans.BACKWARD_INPUT, x.shape, c.w.shape, whole.shape, last, ctx)
        steps.give(of_whole)
        steps.give(of_weight)
    if 1 in position:
        last = c.dtype != "float64" and (g.suggests_last() or x.suggests_last())
        whole, of_whole = steps.copy(g, last)
        operand, of_operand = steps.copy(x, last)
        steps.out(position[1])
        if c.transposed:
            c.workspace(steps, plans.BACKWARD_WEIGHT, whole.shape, c.w.shape, operand.shape, last, ctx)
        else:
            c.workspace(steps, plans.BACKWARD_WEIGHT, operand.shape, c.w.shape, whole.shape, last, ctx)
        steps.give(of_operand)
        steps.give(of_whole)
    steps.give(of_gradient)
    steps.give(of_x)


def bias_sum(gradient, out, ctx):
    """The gradient of the bias is a sum over all dimensions but the channels'."""
    from . import kernels
    dims = [d for d in range(gradient.dim()) if d != 1]
    steps = kernels.plan(torch.ops.aten.sum.dim_IntList, (gradient, dims), {}, [out], ctx)
    return steps if steps else [("out", 0)]


# Recurrent networks

def rnn(args, kwargs, outs, ctx):
    (x, weight, per_layer, buffer, hx, cx, mode, hidden, projection, layers, batch_first, dropout, train, both,
     batch_sizes, state) = args[:16]
    steps, dtype = Steps(), NAMES.get(x.dtype, "float32")
    if dropout > 0 and train:
        steps.list.append(("keep", ("cudnn_dropout", getattr(ctx, "device", 0)), sizes.DROPOUT_STATE))
    n = Recurrent(x, mode, hidden, projection, layers, both, batch_first, batch_sizes, dtype, ctx)
    copy = n.copy_of(steps, x)
    for i in range(3):
        steps.out(i)
    if buffer is None:
        steps.out(4)
    work = steps.take(n.workspace(True, train, dropout if train else 0))
    if train:
        steps.out(3)
    steps.give(work)
    steps.give(copy)
    return steps.list


def rnn_backward(args, kwargs, outs, ctx):
    (x, weight, per_layer, buffer, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden, projection, layers,
     batch_first, dropout, train, both, batch_sizes, state, reserve, mask) = args[:22]
    steps, dtype = Steps(), NAMES.get(x.dtype, "float32")
    if grad_output is None and grad_hy is None and grad_cy is None:
        return None
    n = Recurrent(x, mode, hidden, projection, layers, both, batch_first, batch_sizes, dtype, ctx)
    size = x.element_size()
    zeros = [steps.take(output.numel() * size)] if grad_output is None else []
    if grad_hy is None:
        zeros.append(steps.take(hx.numel() * size))
    if cx is not None and grad_cy is None:
        zeros.append(steps.take(cx.numel() * size))
    copies = [n.copy_of(steps, x)]
    copies.append(n.copy_of(steps, output if grad_output is None else grad_output, grad_output is None))
    states = [hx] + ([cx] if cx is not None else [])
    for i in range(1 + len(states)):
        steps.out(i)
    work = steps.take(n.workspace(False, True, dropout))
    for number in [work] + copies[::-1]:
        steps.give(number)
    if mask[3]:
        again = n.copy_of(steps, x)
        first = 1 + len(states)
        biases = per_layer >= 4
        weights = sizes.rnn_weights(mode, n.inputs, hidden, projection, layers, both)
        flat = None if biases else steps.take(weights * size)
        if biases:
            for i in range(first, len(outs)):
                steps.out(i)
        work = steps.take(n.workspace(False, True, dropout))
        if not biases:
            for i in range(first, len(outs)):
                steps.out(i)
        steps.give(work)
        steps.give(flat)
        steps.give(again)
    for number in zeros[::-1]:
        steps.give(number)
    return steps.list


class Recurrent:
    """Sizes of one call of a recurrent network."""

    def __init__(self, x, mode, hidden, projection, layers, both, batch_first, batch_sizes, dtype, ctx):
        self.mode, self.hidden, self.projection, self.layers = mode, hidden, projection, layers
        self.both, self.dtype, self.inputs = bool(both), dtype, x.shape[-1]
        self.packed, self.ctx = bool(batch_sizes), ctx
        self.swapped = bool(batch_first) and not self.packed
        if self.packed:
            self.steps, self.batch, self.rows = len(batch_sizes), batch_sizes[0], x.shape[0]
        else:
            self.steps, self.batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
            self.rows = self.steps * self.batch

    def copy_of(self, steps, tensor, plain=False):
        """contiguous() of a tensor that is put into the order of time. plain: of zeros in the tensor's shape."""
        if plain:
            tensor = tensor.new_empty(tensor.shape)
        t = tensor.transpose(0, 1) if self.swapped else tensor
        return None if t.is_contiguous() else steps.take(t.numel() * t.element_size())

    def workspace(self, forward, training, dropout):
        algorithm = sizes.rnn_algorithm(
            self.mode, self.hidden, self.projection, self.layers, self.both, self.inputs, self.batch, self.packed,
            self.dtype, forward, self.ctx.sm, self.ctx.sms)
        return sizes.rnn_workspace(
            algorithm, self.mode, self.inputs, self.hidden, self.projection, self.layers, self.both, self.rows,
            self.steps, self.batch, self.packed, self.dtype, training, dropout > 0)


def reserve_bytes(args):
    """Bytes of the reserve of _cudnn_rnn, which is an output whose size only cuDNN knows."""
    x, mode, hidden, projection, layers, dropout, both, batch_sizes = (args[i] for i in (0, 6, 7, 8, 9, 11, 13, 14))
    rows = x.shape[0] if batch_sizes else x.shape[0] * x.shape[1]
    dropped = 0 if not dropout else len(batch_sizes) * batch_sizes[0] if batch_sizes else rows
    return sizes.rnn_reserve(mode, hidden, projection, layers, both, rows, x.element_size(), dropped)


# Batch norm

def batch_norm(args, kwargs, outs, ctx):
    x, training = args[0], args[5]
    steps = Steps()
    for i in range(3):
        steps.out(i)
    if training:
        view = View.of(x)
        steps.give(steps.take(sizes.batch_norm_workspace(view.shape, view.suggests_last(), NAMES[x.dtype], False)))
    steps.out(3)
    return steps.list


def batch_norm_backward(args, kwargs, outs, ctx):
    x, gradient = View.of(args[0]), View.of(args[1])
    steps = Steps()
    last = x.suggests_last()
    _, copy = steps.copy(gradient, last)
    for i in range(3):
        steps.out(i)
    steps.give(steps.take(sizes.batch_norm_workspace(x.shape, last, NAMES[args[0].dtype], True)))
    steps.give(copy)
    return steps.list


RULES = {
    "aten.convolution.default": convolution,
    "aten._convolution.default": convolution,
    "aten.convolution_backward.default": convolution_backward,
    "aten.cudnn_convolution.default": cudnn_convolution,
    "aten.cudnn_convolution_transpose.default": cudnn_convolution_transpose,
    "aten.cudnn_convolution_relu.default": cudnn_convolution_relu,
    "aten._cudnn_rnn.default": rnn,
    "aten._cudnn_rnn_backward.default": rnn_backward,
    "aten.cudnn_batch_norm.default": batch_norm,
    "aten.cudnn_batch_norm_backward.default": batch_norm_backward,
}


def plan(func, args, kwargs, outs, ctx):
    """The steps of an operator's own memory, or None if it allocates its outputs alone, in order."""
    rule = RULES.get(str(func))
    if rule is None:
        return None
    steps = rule(args, kwargs or {}, outs, ctx)
    if not steps or all(step[0] == "out" for step in steps) and [s[1] for s in steps] == sorted(s[1] for s in steps):
        return None
    return steps


def known(func):
    return str(func) in RULES
