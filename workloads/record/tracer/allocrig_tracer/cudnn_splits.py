"""Weight gradients of filters of one element in NHWC, which cublasLt computes: it divides the sum over all positions.

Into how many parts is cublasLt's choice, of no simple form. kernels/cudnn_splits.tsv has what a card listed for widths
in common use and for the layers of public architectures, over the number of positions; the nearest one is taken. Between
widths that were not measured the number of parts is that of the nearest two. measure/cudnn_fit.py writes the table;
kernels/CUDNN.md says how often that is right.
"""
import math

from . import cudnn_fitted as fitted

NAME = "cudnn_splits.tsv"
OTHER = -1  # the first plan that cuDNN lists without a driver leads
WIDTH = 4  # a factor in a width counts as much as its fourth power in the number of positions


def kind(dtype):
    return "32" if dtype == "float32" else "16"


class Splits:
    def __init__(self):
        self.layers = {}
        for line in fitted.lines_of(NAME):
            if not line.startswith("#"):
                bits, k, c, points = line.split("\t")
                self.layers[bits, int(k), int(c)] = [tuple(int(v) for v in p.split(":")) for p in points.split(" ")]

    def size(self, s):
        """Bytes, or None if another plan leads."""
        bits, k, c = kind(s.dtype), s.w[0], s.w[1]
        rows = s.x[0] * math.prod(s.x[2:])
        layer = (bits, k, c)
        if layer not in self.layers:
            layer = min((v for v in self.layers if v[0] == bits), default=None,
                        key=lambda v: self.far(v, k, c) * WIDTH + self.nearest(v, rows)[0])
            if layer is None:
                return None
        _, size = self.nearest(layer, rows)
        if layer[1:] != (k, c):
            size = size // (4 * layer[1] * layer[2]) * 4 * k * c if size > 0 else size
        return None if size == OTHER else size

    @staticmethod
    def far(layer, k, c):
        return abs(math.log(layer[1] / k)) + abs(math.log(layer[2] / c))

    def nearest(self, layer, rows):
        """(distance, bytes) of the measured number of positions that is nearest."""
        return min((abs(math.log(r / rows)), size) for r, size in self.layers[layer])
