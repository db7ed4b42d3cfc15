"""What the rules of kernels_*.py share: sizes of tensors, steps of a plan, arguments of operators.

A tensor needs .shape, .dtype, .stride() and .device only: fake tensors of PyTorch serve, and so do
plain objects of a test.
"""

ITEM = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
        "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "complex32": 4,
        "uint16": 2, "uint32": 4, "uint64": 8, "qint8": 1, "quint8": 1, "qint32": 4}
HALF = ("float16", "bfloat16")


def dtype_of(value):
    """The name of a dtype, or of a tensor's dtype: float32, bfloat16, ..."""
    return str(getattr(value, "dtype", value)).rsplit(".", 1)[-1]


def item_bytes(value):
    """Bytes of one element."""
    name = dtype_of(value)
    return ITEM.get(name, 1 if name.startswith("float8") else 4)


def is_tensor(value):
    return hasattr(value, "shape") and hasattr(value, "stride") and hasattr(value, "dtype")


def on_card(value):
    return is_tensor(value) and str(getattr(value, "device", "cuda")).startswith("cuda")


def product(sizes):
    total = 1
    for size in sizes:
        total *= int(size)
    return total


def numel(tensor):
    return product(tensor.shape)


def bytes_of(tensor):
    """Bytes of the elements, as a contiguous tensor has them."""
    return numel(tensor) * item_bytes(tensor)


def strides_of(tensor):
    return [int(s) for s in tensor.stride()]


def in_order(shape, strides):
    """Whether elements lie in the order of the dimensions, without gaps."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def contiguous(tensor):
    return in_order([int(s) for s in tensor.shape], strides_of(tensor))


def dense(tensor):
    """Whether the elements lie without gaps and overlaps, in the order of any permutation."""
    expected = 1
    for stride, size in sorted(zip(strides_of(tensor), [int(s) for s in tensor.shape])):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def suggests_channels_last(shape, strides):
    """c10::MemoryFormat: is_channels_last_strides_2d and _3d, which leave room for gaps between the elements."""
    dims = len(shape)
    if dims not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for d in [1] + list(range(dims - 1, 1, -1)) + [0]:
        if shape[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * max(shape[d], 1)
    return True


def channels_last(tensor):
    """Whether a tensor of 4 or 5 dimensions is in channels_last order (and not plain)."""
    shape, strides = [int(s) for s in tensor.shape], strides_of(tensor)
    if len(shape) not in (4, 5):
        return False
    order = [1] + list(range(len(shape) - 1, 1, -1)) + [0]
    expected = 1
    for dim in order:
        if shape[dim] == 1:
            continue
        if strides[dim] != expected:
            return False
        expected *= shape[dim]
    return not contiguous(tensor)


def ceil_div(value, unit):
    return -(-value // unit)


def round_up(value, unit):
    return ceil_div(value, unit) * unit


def argument(args, kwargs, place, name, default=None):
    """An argument by its place or its name."""
    if place is not None and place < len(args):
        return args[place]
    return kwargs.get(name, default)


def wrap(dim, ndim):
    return dim + ndim if dim < 0 else dim


class Steps(list):
    """The steps of a plan, in order. Sizes of 0 bytes are not requests and leave no step."""

    def __init__(self):
        super().__init__()
        self.taken = 0

    def out(self, index=0, size=None):
        """Output index is allocated here, of size bytes if they differ from the output's; 0: the
        kernel makes no such output on the card."""
        self.append(("out", index) if size is None else ("out", index, size))
        return self

    def take(self, size):
        """A temporary; returns its number for give, or None if it has no bytes."""
        if size <= 0:
            return None
        self.append(("take", int(size)))
        self.taken += 1
        return self.taken - 1

    def give(self, *numbers):
        for number in numbers:
            if number is not None:
                self.append(("give", number))
        return self

    def keep(self, key, size):
        if size > 0:
            self.append(("keep", key, int(size)))
        return self

    def unsure(self, low, high):
        """The bytes of the last take, or of requests that no step names, are between low and high."""
        self.append(("unsure", int(low), int(high)))
        return self

    def spend(self, *sizes):
        """Temporaries that are taken in order and given in the reverse order."""
        numbers = [self.take(size) for size in sizes]
        return self.give(*reversed(numbers))
