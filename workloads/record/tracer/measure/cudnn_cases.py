"""Convolutions that measure/cudnn.py draws: layers of public architectures, a random grid, and grids of kinds of which
these have few. No shape is taken from a program that is tested."""
import gzip
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "allocrig_tracer"))
import cudnn_library as library  # noqa: E402

NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64"}


def numbers(text):
    return [int(v) for v in text.split("x")]


def text(values):
    return "x".join(str(int(v)) for v in values)


class Case:
    """A convolution. layout: three letters for input, weight, gradient of the output; c or l (channels last)."""
    FIELDS = ("x", "w", "stride", "padding", "dilation", "groups", "transposed", "output_padding", "bias", "dtype",
              "layout")

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def line(self):
        return "\t".join(text(v) if isinstance(v, (list, tuple)) else str(v)
                         for v in (getattr(self, f) for f in self.FIELDS))

    @classmethod
    def parse(cls, columns):
        values = dict(zip(cls.FIELDS, columns))
        for f in ("x", "w", "stride", "padding", "dilation", "output_padding"):
            values[f] = numbers(values[f])
        for f in ("groups", "transposed", "bias"):
            values[f] = int(values[f])
        return cls(**values)

    def output(self):
        spatial = zip(self.x[2:], self.w[2:], self.stride, self.padding, self.dilation, self.output_padding)
        if self.transposed:
            return [self.x[0], self.w[1] * self.groups] + [
                (n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in spatial]
        return [self.x[0], self.w[0]] + [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, o in spatial]

    def bytes(self):
        size = {"f32": 4, "f64": 8}.get(self.dtype, 2)
        total = 0
        for shape in (self.x, self.w, self.output()):
            n = size
            for v in shape:
                n *= v
            total += n
        return total

    def valid(self):
        return min(self.output()) > 0 and self.x[1] % self.groups == 0


def layouts(draw, dims):
    if dims == 3:
        return "ccc"
    return draw.choice(("ccc", "ccc", "lll", "lll", "lcl", "llc", "clc", "ccl")[:8])


def shape_rows():
    with open(os.path.join(HERE, "cudnn_shapes.tsv")) as f:
        return [row for row in (line.rstrip("\n").split("\t") for line in f) if row[0] == "conv"]


def table_cases(draw, limit):
    """Layers of public architectures: batch size, type and layout are drawn."""
    rows = shape_rows()
    while True:
        draw.shuffle(rows)
        for row in rows:
            fields = dict(zip(Case.FIELDS[:9], row[2:]))
            fields["x"] = f"{draw.choice((1, 2, 3, 4, 8, 16, 24, 32, 64, 128, 256))}x{fields['x']}"
            dims = fields["x"].count("x") + 1
            case = Case.parse([fields[f] for f in Case.FIELDS[:9]] + [
                draw.choice(("f32", "f32", "bf16", "bf16", "f16")), layouts(draw, dims)])
            if case.valid() and case.bytes() <= limit:
                yield case


def random_cases(draw, limit):
    """A random grid over all parameters."""
    def channels():
        return draw.choice((1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640,
                            768, 1024, 1280, 2048))
    while True:
        dims = draw.choice((1, 2, 2, 2, 2, 3))
        most = {1: 20000, 2: 256, 3: 64}[dims]
        size = [max(1, int(most ** draw.uniform(0.2, 1)))] * dims
        if draw.random() < 0.3:
            size = [max(1, int(v * draw.uniform(0.5, 1.5))) for v in size]
        kernel = [draw.choice((1, 1, 2, 3, 3, 3, 3, 4, 5, 7, 9))] * dims
        if dims > 1 and draw.random() < 0.1:
            kernel[0] = 1
        stride = [draw.choice((1, 1, 1, 2, 2, 3, 4))] * dims
        dilation = [draw.choice((1, 1, 1, 1, 2, 4))] * dims
        padding = [draw.choice((0, d * (k - 1) // 2, k // 2)) for d, k in zip(dilation, kernel)]
        c, k = channels(), channels()
        groups = draw.choice((1, 1, 1, 1, 1, 2, 4, 8, 32, c))
        if c % groups or k % groups:
            groups, k = c, c
        transposed = int(draw.random() < 0.15)
        w = ([c, k // groups] if transposed else [k, c // groups]) + kernel
        output_padding = [draw.randrange(s) if transposed and s > 1 else 0 for s in stride]
        case = Case(x=[draw.choice((1, 2, 3, 4, 6, 8, 12, 16, 20, 32, 48, 64, 128, 256)), c] + size, w=w, stride=stride,
                    padding=padding, dilation=dilation, groups=groups, transposed=transposed,
                    output_padding=output_padding, bias=draw.randrange(2),
                    dtype=draw.choice(("f32", "f32", "bf16", "bf16", "f16", "f64")), layout=layouts(draw, dims + 2))
        if case.valid() and case.bytes() <= limit:
            yield case


def cases(seed, limit, random_share=0.35):
    draw = random.Random(seed)
    table, grid = table_cases(draw, limit), random_cases(draw, limit)
    while True:
        yield next(grid if draw.random() < random_share else table)


def weight_cases(draw, limit):
    """Kinds of which the shared grid has few: strides with even filters, filters of one element in any dimensions,
    depthwise filters of three to seven elements, small images, narrow layers."""
    while True:
        kind = draw.choice(("even", "point", "depthwise", "plain", "volume"))
        dims = 3 if kind == "volume" or kind == "point" and draw.random() < .4 else draw.choice((1, 2, 2, 2))
        most = {1: 16000, 2: 160, 3: 40}[dims]
        size = [max(1, int(most ** draw.uniform(0.3, 1)))] * dims
        if draw.random() < 0.3:
            size = [max(1, int(v * draw.uniform(0.5, 1.5))) for v in size]
        k, stride = {"even": (draw.choice((2, 4, 4, 4, 6)), 2), "point": (1, 1), "volume": (draw.choice((1, 2, 3)), 1),
                     "depthwise": (draw.choice((3, 5, 5, 7)), draw.choice((1, 1, 2))),
                     "plain": (draw.choice((3, 3, 5, 7)), draw.choice((1, 1, 2)))}[kind]
        c, o = (draw.choice((1, 2, 3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 512, 768, 1024)) for _ in "co")
        groups = 1
        if kind == "depthwise":
            c = max(c, 8)
            o = groups = c
        case = Case(x=[draw.choice((1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128)), c] + size,
                    w=[o, c // groups] + [k] * dims, stride=[stride] * dims,
                    padding=[k // 2 if k % 2 else (k - stride) // 2] * dims, dilation=[1] * dims, groups=groups,
                    transposed=0, output_padding=[0] * dims, bias=0,
                    dtype=draw.choice(("f32", "f32", "bf16", "f16")), layout=layouts(draw, dims + 2))
        if case.valid() and case.bytes() <= limit:
            yield case


def grouped(draw):
    """Filters of groups of several channels, as in ResNeXt, RegNet and shuffling networks."""
    width, groups = draw.choice((4, 8, 8, 16, 16, 24, 32, 40, 48, 64, 64, 112, 120)), draw.choice((2, 2, 3, 4, 8, 16, 32, 32, 64))
    k, stride = draw.choice(((3, 1), (3, 1), (3, 1), (3, 2), (1, 1), (5, 1), (7, 1)))
    outs = draw.choice((width, width, width, 2 * width, max(1, width // 2), 4))
    return width * groups, outs * groups, groups, (k, k), (stride, stride), (k // 2, k // 2), (1, 1)


def by_channel(draw):
    """Depthwise filters."""
    k, stride = draw.choice(((3, 1), (3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2), (9, 1))), 1
    k, stride = k
    c = draw.choice((16, 24, 32, 40, 64, 72, 96, 112, 120, 128, 144, 184, 192, 240, 256, 288, 384, 480, 512, 576, 672, 768, 960, 1024, 1152, 1536))
    shape = draw.choice(((k, k),) * 5 + ((1, k),))
    return c, c, c, shape, tuple(stride if v > 1 else 1 for v in shape), tuple(v // 2 for v in shape), (1, 1)


def dense(draw, wide):
    """Filters of all other kinds: strides, patches, one dimension, dilation, products with stride 1."""
    c, o = draw.choice(wide), draw.choice(wide)
    kind = draw.choice(("point", "point", "stride", "patch", "line", "dilated", "even", "stem", "plain", "plain", "plain"))
    k, stride, dilation = (1, 1), (1, 1), (1, 1)
    if kind == "stride":
        k, stride = draw.choice(((1, 1), (3, 3), (3, 3), (5, 5))), (2, 2)
    elif kind == "patch":
        p = draw.choice((2, 2, 4, 8, 14, 16, 32))
        k, stride, c = (p, p), (p, p), draw.choice((3, 3, 1, 4, c if p < 8 else 3))
    elif kind == "line":
        k = draw.choice(((1, 3), (1, 3), (1, 5), (1, 7), (1, 10), (3, 1), (1, 15), (1, 2)))
        stride = draw.choice(((1, 1), (1, 1), (1, 2)))
        dilation = draw.choice(((1, 1), (1, 1), (1, 2), (1, 4)))
    elif kind == "dilated":
        k, dilation = (3, 3), draw.choice(((2, 2), (4, 4), (6, 6), (12, 12)))
    elif kind == "even":
        p = draw.choice((2, 4, 4, 6))
        k, stride = (p, p), draw.choice(((2, 2), (2, 2), (1, 1)))
    elif kind == "stem":
        k, stride, c = draw.choice((((7, 7), (2, 2)), ((3, 3), (2, 2)), ((3, 3), (1, 1)), ((8, 8), (4, 4)), ((5, 5), (1, 1)))) + (draw.choice((1, 3, 3, 4)),)
    elif kind == "plain":
        k = draw.choice(((3, 3), (3, 3), (3, 3), (5, 5), (7, 7)))
    padding = tuple(d * (v - 1) // 2 if v % 2 else 0 if v == s else (v - s) // 2 for v, s, d in zip(k, stride, dilation))
    return c, o, 1, k, stride, padding, dilation


def case_of(x, w, stride, padding, dilation, groups, dtype, layout):
    return Case(x=list(x), w=list(w), stride=list(stride), padding=list(padding), dilation=list(dilation), groups=groups,
                transposed=0, output_padding=[0] * len(stride), bias=0, dtype=dtype, layout=layout)


def later_case(draw, kind, pairs, wide):
    """(operation, case) of what the first grids lack: pictures above 128 x 128, volumes, lines, filters of one element
    for every operation and of any width, depthwise filters in 16 bits."""
    operation = draw.choice((library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT))
    dtype = draw.choice(("f32", "f32", "bf16", "f16"))
    layout, n, c, o = draw.choice(("ccc", "lll")), draw.choice((1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)), draw.choice(wide), draw.choice(wide)
    side = lambda: draw.choice((96, 112, 128, 144, 160, 192, 224, 256, 288, 300, 320, 384, 416, 448, 480, 512, 640))
    h = side()
    w = h if draw.random() < .7 else side()
    groups, k, stride, padding, dilation = 1, (1, 1), (1, 1), (0, 0), (1, 1)
    if kind == "heads":  # the last layer of a network that marks pixels
        c, o = draw.choice((16, 24, 32, 40, 48, 56, 60, 64, 64, 72, 80, 96, 100, 128, 160, 192, 256)), draw.choice((1, 1, 2, 3, 3, 4, 5, 6, 8, 10, 12, 16, 19, 20, 21, 24, 32))
        n, layout = draw.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 24, 28, 30, 32, 48, 64)), draw.choice(("ccc", "ccc", "ccc", "lll"))
        h = draw.choice((64, 80, 96, 100, 112, 120, 128, 144, 160, 192, 200, 224, 240, 256, 256, 288, 300, 320, 384, 400, 416, 448, 480, 512, 640))
        w = h if draw.random() < .7 else side()
        operation = draw.choice((operation, library.BACKWARD_WEIGHT))
    if kind in ("bigpoint", "product", "widths"):
        if kind == "widths":
            c, o = (draw.choice((8, 8, 16, 4)) * draw.randint(1, draw.choice((32, 64, 128))) for _ in "co")
            c, o = (draw.choice((c, o, 6 * o, 4 * o, o // 4)), o) if draw.random() < .6 else (c, o)
            c = min(max(c, 4), 4096)
            operation = draw.choice((operation, library.BACKWARD_WEIGHT))
        elif draw.random() < .4:
            o, c = draw.choice(pairs)
            o, c = draw.choice(((o, c), (c, o)))
        if draw.random() < .15:
            o = draw.choice((1, 2, 3, 4, 5, 10, 19, 21))
        if kind != "bigpoint":
            n = draw.choice((1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 100, 128, 256))
            h = draw.choice((1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 20, 24, 26, 28, 30, 32, 36, 40, 48, 52, 56, 64, 72, 80, 96, 112, 128))
            w = h if draw.random() < .75 else draw.choice((1, 8, 10, 16, 20, 32, 50, 64, 100, 128))
            layout = draw.choice(("ccc", "ccc", "lll"))
    elif kind == "depthwise16":
        c, o, groups, k, stride, padding, dilation = by_channel(draw)
        h = draw.choice((4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256))
        w = h if draw.random() < .7 else draw.choice((4, 8, 10, 14, 20, 28, 32, 40, 56, 64, 80, 128))
        n = draw.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256))
        dtype = draw.choice(("bf16", "f16"))
        operation = draw.choice((library.BACKWARD_INPUT,) + (library.BACKWARD_WEIGHT,) * 4)
    elif kind == "big":
        c, o, groups, k, stride, padding, dilation = dense(draw, wide)
        c = draw.choice((3, 16, 32, 48, 64, 64, 96, 128, 256)) if c > 4 else c
    elif kind == "deep":
        c, o = draw.choice((512, 576, 640, 768, 960, 1024, 1280)), draw.choice((256, 512, 640, 768, 1024, 1280, 2048))
        h = draw.choice((4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64))
        w, k, padding = h, (3, 3), (1, 1)
    elif kind == "line":
        h, w = 1, draw.choice((30, 50, 64, 75, 100, 128, 150, 200, 256, 400, 500, 512, 750, 800, 1000, 1024, 1500, 2000, 3000, 4096, 8000, 16000))
        n, layout = draw.choice((1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)), "ccc"
        v, s, d = draw.choice(((3, 1, 1), (3, 1, 1), (3, 2, 1), (3, 1, 2), (3, 1, 4), (3, 1, 8), (5, 1, 1), (5, 2, 1), (7, 1, 1), (7, 1, 3), (9, 1, 1), (11, 1, 1), (4, 2, 1), (8, 4, 1), (15, 1, 1), (10, 5, 1), (2, 2, 1), (1, 1, 1)))
        k, stride, dilation = (1, v), (1, s), (1, d)
        padding = (0, draw.choice((d * (v - 1) // 2, d * (v - 1) // 2, 0)))
    elif kind == "sequences":  # filters of one element over sequences
        c, o = (draw.choice((8, 16, 16, 24, 32)) * draw.randint(1, draw.choice((8, 32, 64))) for _ in "co")
        o = draw.choice((o, o, c, 2 * c, 2 * c, 4 * c, max(1, c // 2), max(1, c // 4), draw.choice((1, 2, 3, 4, 10, 21))))
        h, w = 1, max(4, int(2 ** draw.uniform(2, 16)))
        w = w if draw.random() < .6 else draw.choice((32, 50, 64, 75, 100, 128, 150, 200, 250, 256, 400, 500, 512, 750, 1000, 1024, 1500, 2000, 2048, 3000, 4096, 8000, 16000))
        n, layout = draw.choice((1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)), "ccc"
        operation = draw.choice((operation, library.BACKWARD_WEIGHT))
    elif kind in SMALL:
        return small_case(draw, kind, operation, dtype)
    elif kind in NEWER:
        return newer_case(draw, kind, operation, dtype)
    elif kind == "volume":
        sides = (4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
        size = [draw.choice(sides)] * 3
        if draw.random() < .4:
            size[draw.randrange(3)] = draw.choice(sides)
        if draw.random() < .25:
            size[0] = draw.choice((2, 4, 8, 16))
        c, o = draw.choice((1, 2, 3, 4, 8, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384)), draw.choice((1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384))
        v, s = draw.choice(((3, 1), (3, 1), (3, 1), (3, 2), (2, 2), (1, 1), (4, 2), (5, 1)))
        k, stride, dilation = [v] * 3, [s] * 3, [1] * 3
        if draw.random() < .2:
            k[0], stride[0] = 1, 1
        padding = [(u - 1) // 2 if u % 2 else (u - t) // 2 for u, t in zip(k, stride)]
        n = draw.choice((1, 1, 2, 2, 3, 4, 6, 8, 16))
        return operation, case_of((n, c, *size), (o, c, *k), stride, padding, dilation, 1, dtype, layout)
    return operation, case_of((n, c, h, w), (o, c // groups, *k), stride, padding, dilation, groups, dtype, layout)


WIDTHS = (8, 16, 24, 32, 40, 48, 64, 64, 80, 96, 112, 128, 128, 144, 160, 176, 192, 224, 240, 256, 256, 288, 320, 336, 384, 384, 448,
          480, 512, 512, 528, 576, 640, 672, 720, 768, 768, 832, 896, 960, 1024, 1024, 1152, 1280, 1536, 1920, 2048, 2304, 3072)
STRIPS = ((3, 2, 1), (3, 2, 1), (3, 2, 1), (3, 1, 1), (3, 1, 1), (2, 2, 1), (5, 1, 1), (5, 2, 1), (7, 1, 1), (7, 3, 1), (4, 2, 1),
          (4, 1, 1), (8, 4, 1), (9, 1, 1), (10, 5, 1), (11, 1, 1), (15, 1, 1), (16, 8, 1), (31, 1, 1), (3, 1, 2), (3, 1, 4), (1, 2, 1))


def newer_case(draw, kind, operation, dtype):
    """Filters of one element over pictures of any size (crops), sequences (speech) and volumes (voxels) in widths of common
    use; filters with strides and groups over sequences (strips); sums of several waves of tiles (waves)."""
    n = draw.choice((1, 2, 3, 4, 5, 6, 8, 8, 10, 12, 14, 16, 16, 20, 24, 32, 32, 48, 64, 96, 128))
    c, o, layout, groups = draw.choice(WIDTHS), draw.choice(WIDTHS), draw.choice(("ccc", "lll")), 1
    o = draw.choice((o, c, 2 * c, 4 * c, max(1, c // 2), max(1, c // 4), draw.choice((1, 2, 10, 19, 21))))
    size = [draw.choice((1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 12, 13, 14, 15, 16, 18, 20, 22, 24, 24, 26, 28, 30, 32, 36, 40, 48, 56, 64, 80, 96))] * 2
    k, stride, padding, dilation = [1, 1], [1, 1], [0, 0], [1, 1]
    if kind == "crops" and draw.random() < .2:
        size[1] = draw.choice((2, 5, 8, 10, 14, 16, 20, 24, 28, 32, 40, 48))
    elif kind in ("speech", "strips"):
        size, layout = [1, draw.choice((draw.randint(8, 200), draw.randint(20, 2000), draw.randint(100, 16000), draw.choice((50, 100, 128, 200, 250, 256, 400, 500, 512, 1000, 1500, 2000, 3000))))], "ccc"
    if kind == "strips":
        groups = draw.choice((1, 1, 1, 1, 2, 4, 8, 16, c))
        v, s, d = draw.choice(STRIPS + ((128, 1, 1), (64, 1, 1), (31, 1, 1)) * (groups == 16))
        if groups > 1:
            o = c
        k, stride, dilation, padding = [1, v], [1, s], [1, d], [0, draw.choice((d * (v - 1) // 2, d * (v // 2), 0))]
    elif kind == "waves":
        operation = draw.choice((operation, library.FORWARD, library.BACKWARD_INPUT))
        v, s = draw.choice(((3, 1), (3, 1), (3, 2), (2, 2), (1, 2), (5, 1), (4, 2), (4, 4), (7, 1)))
        line = draw.random() < .3
        size, layout = ([1, draw.randint(30, 4000)], "ccc") if line else ([draw.randint(4, 128)] * 2, layout)
        k, stride, padding = [1 if line else v, v], [1 if line else s, s], [0 if line else (v - 1) // 2, (v - 1) // 2]
    elif kind == "voxels":
        size = [draw.choice((1, 2, 4, 8, 8, 16, 5, 10)), *size] if draw.random() < .7 else [draw.choice((4, 6, 8, 10, 12, 16, 20, 24, 32))] * 3
        k = draw.choice(([1, 1, 1],) * 4 + ([1, 3, 3], [3, 1, 1], [3, 3, 3]))
        stride, padding, dilation = [draw.choice((1, 1, 1, 2)) if v > 1 else 1 for v in k], [v // 2 for v in k], [1] * 3
    return operation, case_of((n, c, *size), (o, c // groups, *k), stride, padding, dilation, groups, dtype, layout)


ODD = (4, 6, 12, 18, 20, 28, 36, 44, 52, 56, 60, 72, 84, 88, 92, 100, 104, 108, 116, 120, 132, 136, 152, 156, 168, 184, 196, 200,
       208, 216, 232, 248, 264, 272, 304, 312, 324, 360, 368, 392, 400, 408, 432, 440, 464, 504, 546, 560, 600, 624, 648, 696, 744, 784, 888, 1104)


def small_case(draw, kind, operation, dtype):
    """Small maps: filters of one element over 1x1 to 20x20 (spots) and over one position (squeeze), the heads of detectors
    (detect), depthwise, grouped and 3x3 filters (small); weight gradients of depthwise filters in 16 bits (channelwise)."""
    n, layout, groups = draw.choice((draw.randint(1, 64), draw.choice((1, 2, 4, 6, 8, 8, 10, 12, 16, 16, 20, 24, 32, 32, 48, 64)))), draw.choice(("ccc", "lll")), 1
    c, step = draw.choice((*WIDTHS, *ODD)), draw.choice((8, 8, 16, 24, 32))
    c = draw.choice((c, c, step * draw.randint(1, 1024 // step)))
    o = draw.choice((draw.choice((*WIDTHS, *ODD)), step * draw.randint(1, 1024 // step), c, 2 * c, 3 * c, 4 * c, 6 * c, *(max(1, c // v) for v in (2, 3, 4, 6, 8, 16))))
    side = lambda: draw.choice((1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13, 14, 14, 15, 16, 17, 18, 19, 20, 20))
    h = 1 if kind == "squeeze" else side() if kind != "channelwise" or draw.random() < .5 else draw.randint(5, 64)
    w = h if h == 1 or draw.random() < .7 else side() if draw.random() < .5 else min(64, max(1, round(h * draw.uniform(.7, 1.5))))
    k, stride = draw.choice(((3, 1), (3, 1), (3, 1), (3, 2), (5, 1), (5, 2), (7, 1))), 1
    k, stride = k if kind in ("small", "channelwise") else (1, 1)
    if kind == "detect":
        o, k = draw.choice((1, 2, 3, 3, 4, 5, 6, 6, 9)) * draw.choice((1, 2, 4, 4, 5, 6, 10, 11, 20, 21, 25, 80, 81, 85, 90, 91, 91, 365)), draw.choice((1, 1, 3))
    elif kind == "channelwise" or kind == "small" and draw.random() < .4:
        o = groups = c
    elif kind == "small" and draw.random() < .5:
        groups = draw.choice([g for g in (2, 3, 4, 8, 16, 32, 64) if c % g == 0] or [1])
        o = draw.choice((c, c, 2 * c, groups * max(1, c // groups // 2)))
    if kind == "channelwise":
        dtype, layout = draw.choice(("bf16", "f16")), draw.choice(("ccc", "lll", "lll", "lll"))
        operation = draw.choice((operation,) + (library.BACKWARD_WEIGHT,) * 3)
    return operation, case_of((n, c, h, w), (o, c // groups, k, k), [stride] * 2, [k // 2] * 2, [1, 1], groups, dtype, layout)


def public_rows():
    """Layers of all models of torchvision and timm (cudnn_layers.py): by kind, of products by filters and channels."""
    kinds = {"products": {}, "depthwise": {}, "sets": {}, "public": {}}
    with gzip.open(os.path.join(HERE, "cudnn_layers.tsv.gz"), "rt") as f:
        for row in (line.rstrip("\n").split("\t") for line in f if line[0] != "#"):
            x, w, stride, padding, dilation = (tuple(numbers(v)) for v in row[:5])
            layer, groups = (x, w, stride, padding, dilation, int(row[5])), int(row[5])
            product = groups == 1 and max(w[2:] + stride) == 1
            kind = "products" if product else "public" if groups == 1 else "depthwise" if w[1] == 1 else "sets"
            kinds[kind].setdefault(w[:2] if product else layer, []).append(layer)
    return {kind: list(layers.values()) for kind, layers in kinds.items()}


def public_case(draw, kind, rows):
    """(operation, case): a layer of a public model, mostly with its own size of images."""
    x, w, stride, padding, dilation, groups = draw.choice(draw.choice(rows[kind]))
    scale = draw.choice((1, 1, 1, 1, .5, .75, 1.25, 1.5))
    x = (draw.choice((1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 48, 50, 56, 64, 72, 80, 96, 100, 112, 128, 160, 192, 256)),
         x[0], *(max(1, round(v * scale)) for v in x[1:]))
    operation = draw.choice((library.FORWARD, library.BACKWARD_INPUT) + (library.BACKWARD_WEIGHT,) * 2)
    dtype, layout = draw.choice(("f32", "f32", "bf16", "f16")), draw.choice(("ccc", "lll"))
    if kind == "products" and draw.random() < .7:
        operation, layout = library.BACKWARD_WEIGHT, "lll"
    if kind == "depthwise" and draw.random() < .8:
        operation, layout = draw.choice((operation, library.BACKWARD_WEIGHT)), draw.choice(("ccc", "lll", "lll"))
        dtype = draw.choice(("bf16", "f16"))
    return operation, case_of(x, w, stride, padding, dilation, groups, dtype, layout)


PUBLIC = ("products", "depthwise", "sets", "public")
NEWER = ("crops", "speech", "strips", "waves", "voxels")
SMALL = ("spots", "squeeze", "detect", "small", "channelwise")
LATER = NEWER + SMALL + ("heads", "bigpoint", "product", "widths", "depthwise16", "big", "deep", "line", "sequences", "volume")


def grid_cases(draw, limit, kinds):
    """(operation, case): weight gradients of 3x3 and other filters, of 1x1 filters, second derivatives, in which
    images are filters (native/Convolution.cpp, _convolution_double_backward), forward and input of the first, and the
    kinds of LATER."""
    pairs = sorted({tuple(numbers(r[3])[:2]) for r in shape_rows() if numbers(r[3])[2:] == [1, 1] and r[7] == "1"})
    narrow = (3, 16, 24, 32, 48, 64, 64, 96, 128, 128, 192, 256, 256, 384, 512)
    wide, rows = narrow + (4, 8, 80, 160, 320, 640, 768, 1024, 1280, 2048), None
    while True:
        kind = draw.choice(kinds)
        if kind in PUBLIC:
            rows = rows or public_rows()
            operation, case = public_case(draw, kind, rows)
            if min(case.x[2:]) > 0 and case.valid() and case.bytes() <= limit:
                yield operation, case
            continue
        if kind in LATER:
            operation, case = later_case(draw, kind, pairs, wide)
            if case.valid() and case.bytes() <= limit:
                yield operation, case
            continue
        n = draw.choice((1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128))
        h = draw.choice((4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 20, 24, 28, 30, 32, 40, 48, 56, 64, 80, 96, 112, 128))
        w = h if draw.random() < .6 else draw.choice((4, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 64, 80, 100, 128))
        dtype, operation = draw.choice(("f32", "f32", "bf16", "f16")), library.BACKWARD_WEIGHT
        layout = draw.choice(("ccc", "ccc", "lll") if kind in ("weight", "other") else ("ccc", "lll", "lll"))
        k, stride = draw.choice(((3, 1),) * 6 + ((3, 2), (4, 2), (5, 1), (5, 1), (7, 1))) if kind != "point" else (1, 1)
        c, o = (draw.choice(wide if kind == "point" else narrow) for _ in "co")
        if kind == "pair":
            (o, c), k, stride = draw.choice(pairs), 1, 1
            layout = "lll"
        x, filters, pad = [n, c, h, w], [o, c, k, k], [(k - 1) // 2 if k % 2 else (k - stride) // 2] * 2
        if kind == "other":
            operation = draw.choice((library.FORWARD, library.BACKWARD_INPUT))
        if kind in ("images", "wide"):
            h, w, n = min(h, 64), min(w, 64), draw.choice((1, 1, 2, 4, 8, 16, 32) if kind == "images" else (48, 64, 96, 128, 192))
            dtype, layout, stride, pad = draw.choice(("f32", "f32", "f32", "bf16")), "ccc", 1, [draw.choice((0, 1, 1))] * 2
            operation = draw.choice((library.FORWARD, library.FORWARD, library.BACKWARD_INPUT))
            x, filters = [c, n, h, w], [o, n, h + 2 * pad[0] - k + 1, w + 2 * pad[0] - k + 1]
        case = Case(x=x, w=filters, stride=[stride] * 2, padding=pad, dilation=[1, 1], groups=1, transposed=0,
                    output_padding=[0, 0], bias=0, dtype=dtype, layout=layout)
        if kind in ("groups", "depthwise", "dense"):
            c, o, groups, k, stride, pad, dilation = grouped(draw) if kind == "groups" else by_channel(draw) if \
                kind == "depthwise" else dense(draw, wide)
            operation = draw.choice((library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT))
            if k[0] == 1 and k[1] > 1:
                h, w = 1, draw.choice((50, 100, 128, 200, 256, 400, 500, 512, 750, 1000, 1500, 2000, 3000, 4096, 16000))
            layout = draw.choice(("ccc", "lll")) if h > 1 else "ccc"
            case = Case(x=[n, c, h, w], w=[o, c // groups, *k], stride=list(stride), padding=list(pad),
                        dilation=list(dilation), groups=groups, transposed=0, output_padding=[0, 0], bias=0,
                        dtype=dtype, layout=layout)
        if min(case.w) > 0 and case.valid() and case.bytes() <= limit:
            yield operation, case
