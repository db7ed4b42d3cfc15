"""Workspaces of a convolution in cuDNN: what the plan takes that PyTorch runs, and what a search takes.

Where the answer comes from, best first:

1. cuDNN itself (cudnn_library.py), asked for the card without having it. On a machine without a driver it leaves
   out engines that need one, and plans for 18 multiprocessors (one GPC of the smallest card of that architecture).
   Both are put right by the rules below. kernels/README.md says how often they hold.
2. The table kernels/cudnn_plans.tsv, written by asking cuDNN on the layers of public architectures: which operands
   the plan copies to the other layout. Shapes that are not in it take the copies of the nearest one.

Rules for what cuDNN leaves out without a driver, measured on an H200 with cuDNN 9.19 (kernels/README.md):

- A kernel 1x1, stride 1, without padding and groups, runs in cublasLt, with a workspace of at most a few hundred
  bytes. Its weight gradient in NCHW is one product per sample into float32, summed up afterwards.
- Depthwise convolutions have engines of their own without workspace; the weight gradient of 16-bit types in NHWC
  takes 32 bytes per sample, element of the filter and channel, with channels in multiples of 32.
- Plans with clusters of thread blocks divide the last, partial wave of tiles along the reduction: each share of a
  tile is a buffer of float32. Tiles t, running blocks p, rest r = t mod p: r * (p // r) buffers if p // r > 1.
"""
import math
from collections import namedtuple
from pathlib import Path

from . import cudnn_library as library

FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT
HERE = Path(__file__).resolve().parent / "kernels"

# first: bytes of the plan that runs without a search, between low and high; largest: bytes that a search takes for
# all of its trials together; chosen: (most likely, low, high) of the plan that a search takes. exact: cuDNN answered.
Answer = namedtuple("Answer", "first low high largest chosen exact")
Shape = namedtuple("Shape", "operation x w y stride padding dilation groups dtype channels_last deterministic allow_tf32")

BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
TIMED = 10  # torch.backends.cudnn.benchmark_limit: plans that a search times
KNOB_TILE, KNOB_WORKSPACE, KNOB_CLUSTER_M, KNOB_CLUSTER_N = 2, 25, 27, 28
TILES = {0: (128, 128), 1: (128, 64), 3: (256, 128), 4: (256, 64), 5: (64, 64), 6: (128, 256), 7: (64, 128),
         9: (64, 256), 20: (256, 96)}
WITHOUT_DRIVER = 18


def product(values):
    return math.prod(values)


def up(value, multiple):
    return -(-value // multiple) * multiple


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
        """The card whose name is part of the given name, else one of the compute capability, else the first."""
        for row in self.rows:
            if row[0].lower() in (name or "").lower():
                return row
        return next((row for row in self.rows if row[1] == str(sm)), self.rows[0])


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
        _, _, clusters, properties = Cards().find(card_name, sm)
        self.blocks = {size + 1: (size + 1) * count for size, count in enumerate(clusters)}
        self.multiprocessors = self.blocks.get(1, 132)
        self.planner = None
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
        found = []
        for _, size, configuration in self.planner.plans(
                s.operation, list(s.x), list(s.w), list(s.y), list(s.stride), list(s.padding), list(s.dilation),
                s.dtype, s.channels_last, s.deterministic, s.allow_tf32):
            found.append(self.on_card(s, size, configuration))
            if not search:
                break
        if not found:
            return self.from_table(s)
        first, low, high = found[0]
        sizes = [p[0] for p in found[:TIMED]]
        special = leading(s, first)
        if special is not None:
            first, low, high = special
            sizes.insert(0, first)
        if not search:
            return Answer(first, low, high, 0, (first, low, high), True)
        x, w, y = operands(s)
        converted = sum(up(v, 128) + 128 for v in (x, w, y)) if not s.channels_last and s.dtype != "float64" else 0
        largest = max([p[0] for p in found] + sizes + [converted, fourier(s)])
        sizes = sizes[:TIMED]
        return Answer(first, low, high, largest, (first, min(sizes), max(sizes)), True)

    def on_card(self, s, size, configuration):
        """(bytes, lowest, highest) on the card, from the bytes that cuDNN answers without a driver."""
        try:
            knobs = self.planner.knobs(configuration)
        except library.CudnnError:
            return size, size, size
        tile = TILES.get(knobs.get(KNOB_TILE))
        if KNOB_CLUSTER_M not in knobs or knobs.get(KNOB_WORKSPACE) != 0 or tile is None or s.groups != 1:
            return size, size, size
        m, n = product((s.y[0],) + tuple(s.y[2:])), s.y[1]
        if s.operation == BACKWARD_INPUT:
            m, n = product((s.x[0],) + tuple(s.x[2:])), s.x[1]
        elif s.operation == BACKWARD_WEIGHT:
            m, n = s.w[0], product(s.w[1:])
        cluster_m, cluster_n = knobs[KNOB_CLUSTER_M], knobs[KNOB_CLUSTER_N]
        cluster = cluster_m * cluster_n
        tiles = up(-(-m // tile[0]), cluster_m) * up(-(-n // tile[1]), cluster_n)
        buffer = 4 * tile[0] * tile[1]
        assumed = WITHOUT_DRIVER // cluster * cluster
        if not assumed:
            return size, size, size
        copies = size - shares(tiles, assumed) * buffer
        if copies < 0:
            return size, size, size
        blocks = self.blocks.get(cluster, self.multiprocessors // cluster * cluster)
        return copies + shares(tiles, blocks) * buffer, copies, copies + blocks * buffer

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
        special = leading(s, first)
        if special is not None:
            first, low, high = special
        largest = max(first, everything, fourier(s))
        return Answer(first, low, high, largest, (first, 0, high), False)


def shares(tiles, blocks):
    """Buffers of the tiles of the last wave that are divided along the reduction."""
    rest = tiles % blocks
    return rest * (blocks // rest) if rest and blocks // rest > 1 else 0


def leading(s, first):
    """(bytes, lowest, highest) if an engine leads that cuDNN leaves out without a driver, else None."""
    if pointwise(s):
        n, k, c, area = s.x[0], s.w[0], s.x[1], product(s.x[2:])
        if s.operation != BACKWARD_WEIGHT:
            side = s.y if s.operation == FORWARD else s.x
            return 0, 0, min(16 * 4 * product(side), 8 << 20) if area * n <= 4096 else 512
        per_sample = n * k * c * 4
        if not s.channels_last:
            intense = 2 * k * c / (area * (c + k))
            if area < 36 or n * area < 64:
                return None
            if intense <= 2.3 or per_sample <= 12 << 20:
                return per_sample, min(first, per_sample), max(first, per_sample)
            return None
        if n * area < 3000:
            return 0, 0, per_sample
        tiles = -(-k // 128) * -(-c // 128)
        split = max(1, min(132 // tiles, n * area // 512)) if tiles <= 66 else 0
        return split * k * c * 4, 0, max(per_sample, split * k * c * 4)
    if depthwise(s):
        if s.operation != BACKWARD_WEIGHT or not s.channels_last:
            return 0, 0, first
        if s.dtype in ("float16", "bfloat16") and all(d == 1 for d in s.dilation):
            size = 32 * s.x[0] * product(s.w[2:]) * up(s.x[1], 32)
            return size, 0, max(size, first)
    return None


def fourier(s):
    """Bytes of the engines that transform float32 operands in NCHW, which a search tries."""
    return 0
