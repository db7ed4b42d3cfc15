"""Convolutions with filters of one element and stride 1 are matrix products of their operands. cuDNN runs them in cublasLt,
which it leaves out without a driver. Two things are fitted to lists that a card gave (measure/cudnn_fit.py):

- Whether cublasLt leads, and how much it may take (cuDNN's knob 25): trees over the sizes (cudnn_trees.tsv).
- Into how many parts it divides the sum of a weight gradient in NHWC (cudnn_splits.tsv): that follows from the filters,
  the channels, the number of positions and the knob alone. Each part is a float32 product. Beside it, and wherever it may
  take something, there are flags.
- Parts and flags of the forward pass and of gradients of inputs: trees as well, whose names begin with `parts-`.
- Over small maps, trees of a later run (`small-`) that see the answers of those before them, and keep or replace them.

A part has a multiple of some positions, so that N parts that are asked for can become fewer. Between two measured numbers
of positions the parts are those of a number that explains both; kernels/CUDNN.md says how often that is right.
"""
import bisect
import math

from . import cudnn_fitted as fitted
from . import cudnn_library as library

NAME = "cudnn_splits.tsv"
OTHER = -1  # an engine leads that cuDNN also lists without a driver
FLAGS = {"32": 400, "16": 272}
SPLIT_FLAGS = {"32": 256, "16": 272}  # of a divided sum, where the table has no others
MULTIPLE = {"32": 4, "16": 8}  # positions
SLACK = 12  # parts that are asked for are at most a twelfth more than those that there are
TILES, UNALIGNED = ((128, 0.5), (64, 0.25)), 2  # what another number of tiles costs, and another alignment
WIDTH = 4  # a factor in a width counts as much as its fourth power in the number of positions
FEATURES = "n c k h w area rows weights c2 k2 area2 rows2 wide narrow half ratio fill64 fill128".split()
MORE = "tiles64 tiles128 tiles256 share product slope".split()  # for parts
SMALL, SMALL_BATCH = 400, 64  # positions of a map, samples
SAME = -2  # a leaf: what the tables before it say
SPLIT = ("c k rows weights c2 k2 rows2 wide narrow half knob tiles64 tall64 flat64 tiles128 tall256 flat256 k64 c64 k128 c128 share64 share128 ratio "
         "many count part far near").split()
SMALL_FEATURES = {"product": FEATURES + ["known"], "parts": FEATURES + MORE + ["count", "flags", "knob"], "split": SPLIT}


def bits(dtype):
    return "32" if dtype == "float32" else "16"


def tree_of(s):
    line = ["line"] if len(s.x) == 4 and s.x[2] == 1 < s.x[3] and not s.channels_last else []  # sequences: measured apart
    line += ["volume"] if len(s.x) == 5 else []
    return "-".join(("product", {library.FORWARD: "forward", library.BACKWARD_INPUT: "input"}.get(s.operation, "weight"),
                     "nhwc" if s.channels_last else "nchw", bits(s.dtype), *line))


def features(s):
    n, c, k, h, w = s.x[0], s.x[1], s.w[0], math.prod(s.x[2:-1]), s.x[-1]
    area, power = h * w, lambda v: min(v & -v, 64)
    fill = [area / (-(-area // tile) * tile) for tile in (64, 128)]
    return (n, c, k, h, w, area, n * area, c * k, power(c), power(k), power(area), power(n * area), max(c, k), min(c, k),
            s.dtype == "float16", n * area / (c * k), *fill)


def product_of(s):
    """Rows, columns and terms of the product that a forward pass or a gradient of the input is."""
    sides = (s.w[0], s.w[1]) if s.operation == library.FORWARD else (s.w[1], s.w[0])
    return (s.x[0] * math.prod(s.x[2:]), *sides)


def features_of_parts(s):
    rows, columns, terms = product_of(s)
    tiles = [-(-rows // m) * -(-columns // n) for m, n in ((64, 64), (128, 128), (256, 128))]
    return (*features(s), *tiles, terms / tiles[1], rows * columns, math.log2(rows * columns / terms))


def features_of_split(s, knob, count, far, near):
    """count: parts by the table, from a row that is so far from the layer, and its positions so near."""
    (k, c), rows, power = s.w[:2], s.x[0] * math.prod(s.x[2:]), lambda v: min(v & -v, 64)
    up = lambda value, tile: -(-value // tile)
    tiles = [up(k, m) * up(c, n) for m, n in ((64, 64), (128, 64), (64, 128), (128, 128), (256, 128), (128, 256))]
    return (c, k, rows, k * c, power(c), power(k), power(rows), max(k, c), min(k, c), s.dtype == "float16", knob, *tiles, up(k, 64), up(c, 64),
            up(k, 128), up(c, 128), rows / tiles[0], rows / tiles[3], rows / (k * c), rows * tiles[3], count, rows / max(count, 1), far, near)


def small(s):
    return len(s.x) == 4 and math.prod(s.x[2:]) <= SMALL and s.x[0] <= SMALL_BATCH and not tree_of(s).endswith("line")


def parts(rows, asked, multiple):
    """Parts of so many positions, if each has a multiple of some."""
    share = -(-rows // asked)
    return -(-rows // (-(-share // multiple) * multiple))


def asked_for(points, multiple):
    """The least number of parts that explains all points, or None."""
    most = max(p[1] for p in points)
    return next((n for n in range(most, most + most // SLACK + 2)
                 if all(parts(p[0], n, multiple) == p[1] for p in points)), None)


def between(points, rows, multiple):
    """(parts, flags) for a number of positions, from measured points (positions, parts, flags), which are sorted."""
    at = bisect.bisect_left(points, (rows,))
    if at == 0 or at < len(points) and points[at][0] == rows:
        return points[at][1:]
    if at == len(points):
        _, last, flags = points[-1]
        return last and parts(rows, asked_for(points[-2:], multiple) or last, multiple), flags
    (r1, n1, f1), (r2, n2, f2) = points[at - 1:at + 1]
    near = (n1, f1) if rows * rows < r1 * r2 else (n2, f2)
    if n1 and n2:
        asked = asked_for(points[at - 1:at + 1], multiple)
        if asked:
            return parts(rows, asked, multiple), near[1]
        low, high = max(r1 / (n1 + 1), r2 / (n2 + 1)), min(r1 / n1, r2 / n2)
        if low < high and n1 < n2:  # a part for each so many positions
            return int(rows * 2 / (low + high)), near[1]
    return near


def point(text, width):
    """POSITIONS:PARTS[:FLAGS]."""
    rows, count, *flags = map(int, text.split(":"))
    return rows, count, flags[0] if flags else SPLIT_FLAGS[width] if count else 0


class Products:
    def __init__(self, trees):
        self.trees, self.layers = trees, {}
        for line in fitted.lines_of(NAME):
            if not line.startswith("#"):
                width, *numbers, points = line.split("\t")
                self.layers[(width, *map(int, numbers))] = [point(p, width) for p in points.split(" ")]

    def sizes(self, s):
        """Bytes of cublasLt's plans, if it leads: the first, and those that follow it with other knobs. Else nothing."""
        knob = self.knob(s)
        if knob in (None, OTHER):
            return []
        plain, flags = 4 * s.w[0] * s.w[1], FLAGS[bits(s.dtype)]
        if s.operation != library.BACKWARD_WEIGHT:
            return [self.of_parts(s, knob) if knob else 0]
        if s.channels_last or s.x[0] == 1 and knob:
            of_samples = 0 if s.channels_last else plain
            return [of_samples + self.divided(s, k) for k in ((knob, 3 - knob) if knob else (0,))]
        of_samples = s.x[0] * plain  # a product of each sample, summed up afterwards
        return [of_samples + flags, of_samples + flags, of_samples][::1 if knob else -1]

    def later(self, s, name, values, known):
        """What the tree of small maps has instead, if it is not the same."""
        leaf = self.trees.leaf("small-" + name, values) if small(s) else None
        return known if leaf in (None, SAME) else leaf

    def knob(self, s):
        known = self.trees.leaf(tree_of(s), features(s))
        return self.later(s, tree_of(s), (*features(s), known), known)

    def known_parts(self, s):
        leaf = self.trees.leaf(tree_of(s).replace("product", "parts"), features_of_parts(s))
        return tuple(map(int, leaf.split(":"))) if leaf else (0, FLAGS[bits(s.dtype)])

    def of_parts(self, s, knob):
        known = self.known_parts(s)
        leaf = self.later(s, tree_of(s).replace("product", "parts"), (*features_of_parts(s), *known, knob), known)
        count, flags = map(int, leaf.split(":")) if leaf is not known else known
        rows, columns, _ = product_of(s)
        return count * 4 * rows * columns + flags

    def divided(self, s, knob):
        count, flags = self.split(s, knob) if knob else (0, 0)
        return count * 4 * s.w[0] * s.w[1] + flags

    def split(self, s, knob):
        known, far, near = self.known_split(s, knob)
        rows = s.x[0] * math.prod(s.x[2:])
        name = tree_of(s).replace("product-weight", "split")
        leaf = self.later(s, name, features_of_split(s, knob, known[0], far, near), known)
        if leaf is known:
            return known
        asked, flags = map(int, leaf.split(":"))
        return (parts(rows, asked, MULTIPLE[bits(s.dtype)]) if asked > 0 else rows // -asked if asked else 0), flags

    def known_split(self, s, knob):
        """((parts, flags), how far the row of the table is, and its positions)."""
        width, k, c, rows = bits(s.dtype), s.w[0], s.w[1], s.x[0] * math.prod(s.x[2:])
        layer, far = (width, k, c, knob), 0
        if layer not in self.layers:
            layer = min((v for v in self.layers if v[0] == width and v[3] == knob), default=None,
                        key=lambda v: self.far(v, k, c) * WIDTH + self.nearest(v, rows))
            far = self.far(layer, k, c) if layer else 0
        return (between(self.layers[layer], rows, MULTIPLE[width]), far, self.nearest(layer, rows)) if layer else ((0, 0), 0, 0)

    @staticmethod
    def far(layer, k, c):
        """How different the products of two layers are: in size, in tiles, and in whether they are aligned to 16 bytes."""
        aligned, total = 4 if layer[0] == "32" else 8, 0
        for a, b in ((layer[1], k), (layer[2], c)):
            total += abs(math.log(a / b)) + UNALIGNED * (min(a & -a, aligned) != min(b & -b, aligned))
            total += sum(cost for tile, cost in TILES if -(-a // tile) != -(-b // tile))
        return total

    def nearest(self, layer, rows):
        return min(abs(math.log(p[0] / rows)) for p in self.layers[layer])
