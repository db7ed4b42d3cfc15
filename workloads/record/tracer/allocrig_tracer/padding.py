"""Which matrix products torch.compile pads: a model of the times that Inductor compares (fx_passes/pad_mm.py).

A product takes a fixed time and, together, that of its arithmetic and of its memory traffic. The rates depend on how
operands lie and on the alignment of their rows: with 16 bytes cuBLAS has its best kernels. An operand that is padded is
copied, from its layout to rows in order; one that can be made with its padding (`free`) only gets the padding written.
Constants: measured on an H200 by ../measure/padding.py, fitted by ../measure/padding_fit.py; other cards by the peaks
of kernel_times.py. 95 % of the 1134 measured decisions are those of the card, and 98 % of those that are a tenth from
the border. 32-bit products without TF32 never gained (112).
"""

import math
from dataclasses import dataclass

TILE = 128  # a block of the result that one multiprocessor computes

# (bytes of an element, batches, layout, alignment): fixed microseconds, 10^12 operations and 10^12 bytes per second.
RATES = {
    (2, False, "nn", 2): (10.8, 138.0, 1.15), (2, False, "nn", 4): (6.05, 234.0, 1.89), (2, False, "nn", 16): (5.37, 800.0, 3.55),
    (2, False, "nt", 2): (11.8, 108.0, 1.3), (2, False, "nt", 4): (7.94, 103.0, 2.49), (2, False, "nt", 16): (5.58, 841.0, 3.68),
    (2, False, "tn", 2): (11.9, 142.0, 1.41), (2, False, "tn", 4): (9.55, 198.0, 1.03), (2, False, "tn", 16): (6.12, 872.0, 2.66),
    (2, True, "nn", 2): (6.09, 102.0, 1.12), (2, True, "nn", 4): (5.46, 225.0, 1.48), (2, True, "nn", 16): (5.67, 1080.0, 3.43),
    (2, True, "nt", 2): (6.07, 106.0, 1.01), (2, True, "nt", 4): (5.88, 141.0, 1.74), (2, True, "nt", 16): (5.29, 2140.0, 3.22),
    (2, True, "tn", 2): (6.28, 2410.0, 1.09), (2, True, "tn", 4): (7.09, 361.0, 1.97), (2, True, "tn", 16): (5.58, 2860.0, 3.46),
    (4, False, "nn", 4): (9.11, 125.0, 2.03), (4, False, "nn", 8): (8.15, 101.0, 2.04), (4, False, "nn", 16): (8.08, 310.0, 2.88),
    (4, False, "nt", 4): (6.44, 116.0, 1.54), (4, False, "nt", 8): (5.65, 83.4, 1.21), (4, False, "nt", 16): (7.28, 352.0, 3.69),
    (4, False, "tn", 4): (10.7, 111.0, 2.26), (4, False, "tn", 8): (7.73, 121.0, 1.18), (4, False, "tn", 16): (8.64, 172.0, 3.24),
    (4, True, "nn", 4): (6.82, 108.0, 2.03), (4, True, "nn", 8): (6.84, 81.8, 2.12), (4, True, "nn", 16): (6.11, 202.0, 3.16),
    (4, True, "nt", 4): (6.63, 132.0, 1.8), (4, True, "nt", 8): (7.07, 101.0, 2.26), (4, True, "nt", 16): (6.23, 394.0, 3.05),
    (4, True, "tn", 4): (7.26, 144.0, 1.89), (4, True, "tn", 8): (7.3, 163.0, 1.87), (4, True, "tn", 16): (6.31, 569.0, 3.13),
}  # fmt: skip
# Bytes of an element: fixed microseconds of a copy; 10^12 bytes per second of rows in order, of transposed ones, and of
# those with at most TILE columns; microseconds of writing the padding, and of padding a bias.
COPIES = {4: (4.48, 1.11, 0.509, 0.874, 1.94, 3.62), 2: (4.77, 0.702, 0.298, 0.622, 2.17, 4.74)}


def even(size, item):
    """The size with its padding (get_padded_length)."""
    step = 16 // item
    return size if size == 1 else -(-size // step) * step


@dataclass
class Product:
    """A product of (batch, m, k) with (batch, k, n)."""

    item: int  # bytes of an element
    operator: str
    batch: int
    m: int
    k: int
    n: int
    even: list  # m, k and n with their padding; a symbolic size has none
    layout: str  # of each operand: n as it is, t transposed
    free: tuple  # whether each operand can be made with its padding

    def __post_init__(self):
        self.sizes = [self.m, self.k, self.n]
        places = ((0, 1), (1, 2))
        self.padded = [[self.sizes[i] for i in pair] != [self.even[i] for i in pair] for pair in places]

    def cell(self, alignment=0):
        """Key of the constants: the smallest alignment of rows in bytes is what counts."""
        rows = (self.k if self.layout[0] == "n" else self.m, self.n if self.layout[1] == "n" else self.k, self.n)
        found = alignment or min(math.gcd(row * self.item, 16) for row in rows)
        return self.item, self.operator == "bmm", self.layout, max(found, 2)

    def padded_cell(self):
        """After a copy an operand lies as it is."""
        layout = "".join("n" if padded else old for padded, old in zip(self.padded, self.layout))
        return self.item, self.operator == "bmm", layout, 16

    def moved(self, sizes):
        m, k, n = sizes
        return float(self.item * self.batch * (m * k + k * n + m * n))

    def time(self, constants, padded=False):
        """Microseconds of the product."""
        fixed, rate, traffic = constants
        m, k, n = sizes = self.even if padded else self.sizes
        rows, columns = (-(-s // t) * t for s in (m, n) for t in (min(TILE, -(-s // 16) * 16),))
        return fixed + math.hypot(2e-6 * self.batch * rows * columns * k / rate, 1e-6 * self.moved(sizes) / traffic)

    def padded_time(self, constants, copies):
        """Microseconds of the padded product and of what pads its operands."""
        copy, rows, turned, narrow, write, bias = copies
        m, k, n = self.even
        total = self.time(constants, True)
        for (long, wide), padded, free, layout in zip(((m, k), (k, n)), self.padded, self.free, self.layout):
            if padded:
                rate = rows if layout == "n" else narrow if wide <= TILE else turned
                total += write if free else copy + 1e-6 * self.item * self.batch * long * wide / rate
        return total + (bias if self.operator == "addmm" and n != self.n else 0)

    def pays(self, rates=None, copies=None, arithmetic=1.0, traffic=1.0):
        """Whether the padded product is a tenth faster; with the speeds of the card in those of an H200."""
        rates, copies = rates or RATES, copies or COPIES[self.item]

        def of(cell):
            """Two transposed operands were not measured, nor 16 bits with rows of 8 bytes' alignment."""
            item, batches, layout, alignment = cell
            alignment = 4 if item == 2 and alignment == 8 else alignment
            fixed, rate, moved = rates[item, batches, "tn" if layout == "tt" else layout, alignment]
            return fixed, rate * arithmetic, moved * traffic

        speeds = [c * traffic if 0 < i < 4 else c for i, c in enumerate(copies)]
        padded = self.padded_time(of(self.padded_cell()), speeds)
        return self.time(of(self.cell())) > 1.1 * padded
