"""Workspaces of a convolution in cuDNN: what the plan takes that PyTorch runs, and what a search takes.

Where the answer comes from, best first:

1. cuDNN itself (cudnn_library.py), asked for the card without having it. On a machine without a driver it leaves
   out engines that need one, and plans for 18 multiprocessors (one GPC of the smallest card of that architecture).
   Both are put right by the rules below. kernels/CUDNN.md says how often they hold.
2. The table kernels/cudnn_plans.tsv, written by asking cuDNN on the layers of public architectures: which operands
   the plan copies to the other layout. Shapes that are not in it take the copies of the nearest one.

Rules for what cuDNN leaves out without a driver, measured on an H200 with cuDNN 9.19 (kernels/CUDNN.md):

- A kernel 1x1, stride 1, without padding and groups, runs in cublasLt: cudnn_products.py. Its weight gradient in NCHW is
  one product per sample into float32, summed up afterwards.
- Depthwise convolutions have engines of their own without workspace; the weight gradient of 16-bit types in NHWC
  takes 32 bytes per sample, element of the filter and channel, with channels in multiples of 32.
- Engines of Winograd products and of Fourier transforms lead where a tree says so (cudnn_fitted.py).
- Plans with clusters of thread blocks divide the last wave of tiles: cudnn_division.py.
"""
from collections import namedtuple
from pathlib import Path

from . import cudnn_division as division
from . import cudnn_fitted as fitted
from . import cudnn_library as library
from .cudnn_division import product, up
from .cudnn_products import Products

FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT
HERE = Path(__file__).resolve().parent / "kernels"

# first: bytes of the plan that runs without a search, between low and high; largest: bytes that a search takes for
# all of its trials together; chosen: (most likely, low, high) of the plan that a search takes. exact: cuDNN answered.
# then: bytes of the plans that PyTorch tries one after another if there is no memory for the first.
Answer = namedtuple("Answer", "first low high largest chosen exact then", defaults=((),))
Shape = namedtuple("Shape", "operation x w y stride padding dilation groups dtype channels_last deterministic"
                            " allow_tf32")

BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
TIMED = 10  # torch.backends.cudnn.benchmark_limit: plans that a search times
NEXT = 63  # plans after the first that a trace names: all that cuDNN lists
LISTED = 44  # the most plans that cuDNN lists: 40 and the fallbacks
LEAST_STEPS = 10  # of a part, for kernels that were not measured


def operands(s):
    size = BYTES[s.dtype]
    return tuple(product(v) * size for v in (s.x, s.w, s.y))


def pointwise(s):
    """Whether the convolution is a matrix product of its operands as they lie in memory."""
    return s.groups == 1 and all(k == 1 for k in s.w[2:]) and all(v == 1 for v in s.stride) and not any(s.padding)


def depthwise(s):
    return s.groups > 1 and s.groups == s.x[1] and s.w[1] == 1


class Cards:
    """Cards in kernels/cudnn_devices.tsv: properties for cuDNN, and clusters of blocks that run at once."""

    def __init__(self):
        self.rows = []
        for line in (HERE / "cudnn_devices.tsv").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, sm, clusters, properties = line.split("\t")
                self.rows.append((name, sm, [int(v) for v in clusters.split(",")], properties.encode()))

    def find(self, name, sm):
        """The card whose name is part of the given name, else one of the compute capability or its generation."""
        major = str(sm).split(".")[0] + "."
        for fits in (lambda row: row[0].lower() in (name or "").lower(), lambda row: row[1] == str(sm),
                     lambda row: row[1].startswith(major)):
            for row in self.rows:
                if fits(row):
                    return row
        return self.rows[0]


class Source:
    """Answers for one card. Answers are kept, because a program repeats its shapes."""
    shared = {}

    @classmethod
    def of(cls, card_name, sm):
        key = (card_name, str(sm))
        if key not in cls.shared:
            cls.shared[key] = cls(card_name, sm)
        return cls.shared[key]

    def __init__(self, card_name, sm, use_library=True):
        _, capability, clusters, properties = Cards().find(card_name, sm)
        self.divides = capability.startswith("9.")  # other generations: not measured
        self.blocks = {size + 1: (size + 1) * count for size, count in enumerate(clusters)}
        self.multiprocessors = self.blocks.get(1, 132)
        self.planner = None
        self.fitted_shares, self.trees = fitted.Shares(), fitted.Trees()
        self.products = Products(self.trees)
        self.answers = {}
        self.table = None
        loaded = library.load() if use_library else None
        if loaded is not None:
            try:
                self.planner = library.Planner(loaded, properties)
            except library.CudnnError:
                self.planner = None  # an architecture that this version of cuDNN does not serve

    def ask(self, shape, search=False):
        """The answer for a shape. Without search, largest and chosen are not filled in: they need every plan."""
        answer = self.answers.get((shape, True)) or self.answers.get((shape, search))
        if answer is None:
            answer = self.from_library(shape, search) if self.planner else self.from_table(shape)
            self.answers[shape, search] = answer
        return answer

    # cuDNN's answer

    def from_library(self, s, search):
        found, ruled, channels = [], None, None
        for engine, size, configuration in self.plans(s):
            if not found and self.divides and s.allow_tf32:
                ruled = self.trees.engine(s, engine, size)
                if ruled:
                    left = fitted.winograd(s) if ruled == fitted.WINOGRAD else fourier(s)
                    found.append((left, left, left))
            if not found and self.divides and depthwise(s):
                tree = fitted.tree_of_channels(s)
                channels = tree and self.trees.leaf(tree, fitted.features_of_channels(s, engine, size))
            found.append(self.on_card(s, size, configuration))
            if not search and (not found[-1][0] or len(found) > NEXT):
                break
        if not found:
            return self.from_table(s)
        first, low, high = found[0]
        sizes = [p[0] for p in found[:TIMED]]
        products = self.products_of(s) if ruled is None else []
        special = leading(s, first, products, channels) if ruled is None else None
        if special is not None:
            first, low, high = special
            sizes.insert(0, first)
        if not search:
            then = products[1:] + [p[0] for p in found[special is None:]]
            return Answer(first, low, high, 0, (first, low, high), True, tuple(between(s, then, ruled)))
        x, w, y = operands(s)
        converted = sum(up(v, 128) + 128 for v in (x, w, y)) if not s.channels_last and s.dtype != "float64" else 0
        transforms = fourier(s)
        if s.operation == FORWARD and pointwise(s) and len(found) + 5 > LISTED:
            transforms = 0  # the last of cuDNN's list, which is cut
        samples = s.x[0] * 4 * s.w[0] * s.x[1] if pointwise(s) and s.operation == BACKWARD_WEIGHT else 0
        largest = max([p[0] for p in found] + sizes + [converted, transforms, samples])
        sizes = sizes[:TIMED]
        return Answer(first, low, high, largest, (first, min(sizes), max(sizes)), True)

    def products_of(self, s):
        """Bytes of the plans of cublasLt that lead, by tables; without TF32 they are not measured."""
        measured = s.dtype != "float64" and (s.dtype != "float32" or s.allow_tf32)
        return self.products.sizes(s) if measured and pointwise(s) else []

    def plans(self, s):
        """(engine, bytes, configuration) of each plan that cuDNN lists without a driver."""
        return self.planner.plans(s.operation, list(s.x), list(s.w), list(s.y), list(s.stride), list(s.padding),
                                  list(s.dilation), s.dtype, s.channels_last, s.deterministic, s.allow_tf32)

    def at_once(self, cluster):
        """Blocks in clusters of this size that run at once."""
        return self.blocks.get(cluster, self.multiprocessors // cluster * cluster)

    def on_card(self, s, size, configuration):
        """(bytes, lowest, highest) on the card, from the bytes that cuDNN answers without a driver."""
        try:
            knobs = self.planner.knobs(configuration)
        except library.CudnnError:
            return size, size, size
        divided = division.divide(s, knobs, self.at_once) if self.divides else None
        copies = division.without_driver(s, size, knobs) if divided else None
        if copies is None:
            return size, size, size
        parts = self.fitted_shares.parts(s, knobs, divided)
        if parts is None:  # a kernel that was not measured
            parts = divided.split if divided.steps >= LEAST_STEPS * divided.split else 0
        right = copies + division.taken(s, divided, parts)
        most = min(divided.rest * divided.split, self.multiprocessors)
        return right, copies, max(right, copies + most * divided.buffer)

    # the table's answer

    def from_table(self, s):
        if self.table is None:
            from .cudnn_table import Table
            self.table = Table(HERE / "cudnn_plans.tsv")
        x, w, y = operands(s)
        copied = self.table.copied(s)
        size = sum(up(v, 16) for v, bit in zip((x, w, y), (1, 2, 4)) if copied & bit)
        everything = 0 if s.channels_last else sum(up(v, 128) + 128 for v in (x, w, y))
        first, low, high = size, 0, max(size, everything) + (self.multiprocessors << 16)
        special = leading(s, first, self.products_of(s))
        if special is not None:
            first, low, high = special
        largest = max(first, everything, fourier(s))
        return Answer(first, low, high, largest, (first, 0, high), False)


def between(s, sizes, ruled):
    """The sizes that follow the first, with those of engines that need a driver and do not lead: for weight gradients in
    NCHW with stride 1 Winograd products after two thirds, Fourier transforms of small images after five sixths (in 6 of
    7 and 3 of 4 lists of plans-19 and families-19; other engines are seldom before a plan that takes nothing)."""
    if (fitted.tree_of(s) == "weight" and s.w[2] < 7 and sizes and not sizes[-1]):
        square = max(n + 2 * p for n, p in zip(s.x[2:], s.padding)) <= 32
        if square and ruled != fitted.FOURIER:
            sizes.insert(len(sizes) * 5 // 6, fourier(s))
        if ruled != fitted.WINOGRAD:
            sizes.insert(len(sizes) * 2 // 3, fitted.winograd(s))
    return sizes


def leading(s, first, products, channels=None):
    """(bytes, lowest, highest) if an engine leads that cuDNN leaves out without a driver, else None. products: bytes of
    plans of cublasLt; channels: the engine of a depthwise filter, 0 if it is cuDNN's first, None if no tree says so."""
    if products:
        most = s.x[0] * 4 * s.w[0] * s.x[1] if s.operation == BACKWARD_WEIGHT else 16 * 4 * product(s.y)
        return products[0], 0, max(products[0], min(most, 64 << 20))
    if pointwise(s) and s.dtype == "float32" and not s.allow_tf32:
        if s.operation == BACKWARD_WEIGHT:
            return 0, 0, first
        return None if s.channels_last else (0, 0, first)
    return by_channel(s, first, channels) if depthwise(s) else None


def by_channel(s, first, engine):
    """Engines for depthwise convolutions with a square filter in two dimensions."""
    half, kernel = s.dtype in ("float16", "bfloat16"), s.w[2:]
    plain = len(s.x) == 4 and s.w[0] == s.x[1] and all(d == 1 for d in s.dilation)
    if not plain or s.dtype == "float64":
        return None
    square = kernel[0] == kernel[1] and kernel[0] in (3, 5, 7)
    if s.operation != BACKWARD_WEIGHT:
        return (0, 0, first) if square or not s.channels_last else None
    size = 32 * s.x[0] * product(kernel) * up(s.x[1], 32)
    if engine is not None:
        taken = size if engine == fitted.DEPTHWISE[0] and s.channels_last else 0
        return (taken, 0, max(taken, first)) if engine else None
    if not s.channels_last:
        small = product(s.x[2:]) <= 2500 and not (max(s.stride) > 1 and s.x[0] >= 128)
        return (0, 0, first) if half and small else None
    if not half or not square or max(s.stride) > 2:
        return None
    area = product(s.y[2:])
    few = kernel[0] == 3 and area <= 600 and s.y[0] * area < 45000  # seeds 18 to 20: 4 of 4 calls, none of the other 6
    if s.dtype == "float16" and 0 < first < size and not few:
        size = first
    return size, 0, max(size, first)


def fourier(s):
    """Bytes of the largest engine that computes Fourier transforms of float32 images, which a search tries.

    The engine of the whole image transforms a square of a power of two for each pair of sample or filter and channel;
    that of tiles (gradient of the input) squares of 32, at most two tiles of an image at once. With stride 2 it does so
    for the four phases of the input. Measured: kernels/CUDNN.md.
    """
    if s.dtype != "float32" or s.groups != 1 or len(s.x) != 4 or any(d != 1 for d in s.dilation):
        return 0
    n, c, k, kernel = s.x[0], s.x[1], s.w[0], s.w[2]
    x, w, y = operands(s)
    if s.stride[0] != s.stride[1] or s.w[3] != kernel and s.operation != FORWARD:
        return 0
    if s.operation == BACKWARD_INPUT:
        if kernel < 3 or kernel > 32 or s.stride[0] > 2:
            return 0
        tile = 8 * 32 * 17
        if s.stride[0] == 1:
            images = c * k + min(2, -(-max(s.x[2:]) // 32)) * n * (c + k)
            return tile * images + (x + y + w if s.channels_last else 0)
        images = 4 * c * k + min(2, -(-(max(s.y[2:]) + 1) // 32)) * n * (4 * c + k)
        padded = 4 * n * k * (s.y[2] + 1) * (s.y[3] + 1)
        return tile * images + x + padded + 16 * c * k * (-(-kernel // 2)) ** 2
    side = max(size + 2 * pad for size, pad in zip(s.x[2:], s.padding))
    side = max(16, 1 << (side - 1).bit_length())
    if side > 256 or s.stride[0] > 1:
        return 0
    image = 2 * side * (side // 2 + 1) * 8
    copies = x + y + (w if kernel > 1 else 0) if s.channels_last else 0
    if s.operation == FORWARD:
        return image * max(c * k + n * c, n * k) + w + copies
    return image * max(c * k, n * (c + k)) + y + copies
