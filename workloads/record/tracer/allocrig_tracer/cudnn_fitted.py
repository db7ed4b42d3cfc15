"""What was fitted to plans that a card lists: how its kernels divide sums, and when engines lead that cuDNN leaves out
without a driver. measure/cudnn_fit.py writes the two tables; kernels/CUDNN.md has the residuals."""
import math
from pathlib import Path

from . import cudnn_library as library
from .cudnn_division import effective

HERE = Path(__file__).resolve().parent / "kernels"
FORWARD, BACKWARD_WEIGHT = library.FORWARD, library.BACKWARD_WEIGHT

POWERS = (2, 4, 8, 16, 32, 64)
FEW = 8  # in one wave, if there can be more parts: one for each so many steps, if that gives more
LEAST = {"float32": 33, "float16": 17, "bfloat16": 17}
SHORTEST = {"float32": 4, "float16": 2, "bfloat16": 2}  # steps of a part, if there are several waves


def lines_of(name):
    path = HERE / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def kernel(s, knobs):
    return s.dtype, int(s.operation == BACKWARD_WEIGHT), knobs[2]


def linear(dtype, steps, split):
    """Parts of a long sum in one wave, or None."""
    parts = steps // LEAST[dtype]
    return min(parts, split) if min(parts, split) > FEW else None


def most(dtype, steps, split):
    """The most parts of a sum in several waves."""
    return min(split, steps // SHORTEST[dtype])


def cheapest(steps, split, doubling):
    """Parts of a sum in one wave: it takes the steps of a part, and the time of some steps for each doubling of the
    parts, which are added pairwise."""
    return min((1, *(p for p in POWERS if p < split), split), key=lambda p: -(-steps // p) + doubling * (p - 1).bit_length())


class Shares:
    """kernels/cudnn_shares.tsv."""

    def __init__(self):
        self.kernels = {}
        for line in lines_of("cudnn_shares.tsv"):
            if not line.startswith("#"):
                dtype, weight, tile, _, doubling, *limits = line.split("\t")
                self.kernels[dtype, int(weight), int(tile)] = (float(doubling or "nan"), *(
                    {int(p): float(v) for p, v in (pair.split(":") for pair in text.split())} for text in limits))

    def parts(self, s, knobs, division):
        """Parts of each tile of the last wave, or None if no such kernel was measured."""
        split, steps = division.split, division.steps
        if split < 2:
            return 0
        dtype, weight, tile = kernel(s, knobs)
        doubling, limits, whole = self.kernels.get((dtype, weight, tile)) or self.kernels.get(
            (dtype, 1 - weight, tile)) or (math.nan, None, None)
        if division.single:
            if math.isnan(doubling):
                return None
            parts = linear(dtype, steps, split) or cheapest(steps, split, doubling)
        elif limits is None:
            return None
        else:
            largest = most(dtype, steps, split)
            parts = max((p for p, limit in limits.items() if p < largest and steps >= limit), default=0)
            near = min(whole, key=lambda n: abs(math.log(n / split)), default=None)
            if near and steps >= whole[near] * (split / near):
                parts = largest
        return effective(steps, parts)


# Engines that cuDNN leaves out: of Winograd products and of Fourier transforms (18; forward: 3)

WINOGRAD, FOURIER = 17, 18
LEFT_OUT = {"weight": (17, 18), "weight16": (17,), "images": (3,)}
FEATURES = "n c k h w kernel engine kilobytes rows weights".split()


def tree_of(s):
    """The tree that says which engine leads, or None if none of them can."""
    if (s.channels_last or s.deterministic or s.groups != 1 or s.dtype == "float64" or max(s.stride) > 1 or
            max(s.dilation) > 1):
        return None
    bits = "" if s.dtype == "float32" else "16"
    if len(s.x) != 4:
        return None
    if s.operation == BACKWARD_WEIGHT:
        same = s.w[2] == s.w[3] and s.w[2] in (3, 5, 7) and max(s.padding) <= s.w[2] // 2
        of_grid = min(s.y[2:]) > 3 and max(s.y[2:]) <= 128 and max(s.x[1], s.w[0]) <= 512
        return "weight" + bits if same and of_grid else None
    large = s.operation == FORWARD and 2 * min(s.w[2:]) > max(s.x[2:]) // 2 and min(s.w[2:]) > 3 and max(s.y[2:]) < 8
    return "images" if large and s.dtype == "float32" and max(s.padding) < 2 else None


def features(s, engine, size):
    n, c, h, w = (*s.x[:2], *s.y[2:]) if s.operation == BACKWARD_WEIGHT else (s.x[1], s.x[0], *s.x[2:])
    kernel, rows = (s.w[2], n * h * w) if s.operation == BACKWARD_WEIGHT else (s.y[2], s.w[2])
    return n, c, s.w[0], h, w, kernel, engine, size >> 10, rows, c * s.w[0]


CHANNELS = "n c h w area out kernel stride rows outs engine kilobytes half c2".split()
DEPTHWISE = (16, 19)  # engines for depthwise filters


def tree_of_channels(s):
    """The tree that says which engine leads for a depthwise filter, or None if it is of a kind that was not measured."""
    square = len(s.x) == 4 and s.w[2] == s.w[3] in (3, 5, 7) and max(s.dilation) == 1 and s.stride[0] == s.stride[1] < 3
    if not square or s.w[0] != s.x[1] or s.dtype not in ("float16", "bfloat16") or s.operation != BACKWARD_WEIGHT:
        return None
    return "channels-weight-" + ("nhwc" if s.channels_last else "nchw")


def features_of_channels(s, engine, size):
    (n, c, h, w), out = s.x, s.y[2] * s.y[3]
    return (n, c, h, w, h * w, out, s.w[2], s.stride[0], n * h * w, n * out, engine, size >> 10, s.dtype == "float16", min(c & -c, 64))


class Trees:
    """kernels/cudnn_trees.tsv: of the engines here, and of cudnn_products.py with features of their own."""

    def __init__(self):
        self.trees, lines = {}, []
        for line in lines_of("cudnn_trees.tsv"):
            if line.startswith("#tree"):
                name, features = line.split("\t")[1:3]
                lines = []
                self.trees[name] = lines, features.split(" ")
            elif not line.startswith("#"):
                lines.append(line)
        self.trees = {name: self.node(iter(lines), features) for name, (lines, features) in self.trees.items()}

    def node(self, lines, features):
        line = next(lines)
        if line[0] == "=":
            return line[1:] if ":" in line else int(line[1:])
        feature, limit = line.split("\t")
        return features.index(feature), float(limit), self.node(lines, features), self.node(lines, features)

    def leaf(self, name, values):
        """The leaf of a tree, or None if there is no such tree."""
        node = self.trees.get(name)
        while isinstance(node, tuple):
            node = node[2] if values[node[0]] <= node[1] else node[3]
        return node

    def engine(self, s, first_engine, first_size):
        """The engine that leads instead of the first that cuDNN lists without a driver, 0 if none does, or None if no
        tree says so."""
        name = tree_of(s)
        return self.leaf(name, features(s, first_engine, first_size)) if name else None


def winograd(s):
    """Bytes of the products of Winograd of a weight gradient: float32 of each tile, channel and filter. Tiles of 4 x 4
    positions and transforms of 6 x 6 for filters of 3 x 3; of 5 x 5 13 x 13 for 9 x 9 positions and 16 samples."""
    n, c, k, (h, w) = s.x[0], s.x[1], s.w[0], s.y[2:]
    if s.w[2] == 3:
        return 4 * 6 * 6 * (n * -(-h // 4) * -(-w // 4) * (c + k) + c * k)
    return 4 * 13 * 13 * (16 * -(-n // 16) * -(-h // 9) * -(-w // 9) * (c + k) + c * k)
