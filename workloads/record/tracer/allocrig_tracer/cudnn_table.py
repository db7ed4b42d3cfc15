"""The table of plans for machines without cuDNN: which operands a convolution's plan copies."""
import math


class Table:
    """kernels/cudnn_plans.tsv. A line: operation, layer, and for each type and layout a digit for each batch size.

    The digits are sums of 1 (input), 2 (weight) and 4 (output): the operands that the plan copies to the other
    layout. A shape that is not in the table has the digit of the nearest layer of the same operation, type, layout
    and kernel, by the logarithms of its sizes.
    """
    COLUMNS = (("float32", False), ("float32", True), ("bfloat16", False), ("bfloat16", True))

    def __init__(self, path):
        self.rows, self.batches = {}, []
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            if line.startswith("#batches"):
                self.batches = [int(v) for v in line.split("\t")[1].split(",")]
            if not line or line.startswith("#"):
                continue
            operation, x, w, y, stride, padding, dilation, groups, *digits = line.split("\t")
            numbers = [tuple(int(v) for v in part.split("x")) for part in (x, w, y, stride, padding, dilation)]
            key = (int(operation), *self.family(numbers[1], numbers[3], int(groups), numbers[0][0]))
            self.rows.setdefault(key, []).append((self.features(*numbers[:3]), digits))

    @staticmethod
    def family(w, stride, groups, channels):
        kernel = "1" if max(w[2:]) == 1 else "k"
        deep = groups > 1 and groups == channels
        return len(stride), kernel, max(stride) > 1, "depthwise" if deep else "groups" if groups > 1 else "dense"

    @staticmethod
    def features(x, w, y):
        return [math.log2(max(v, 1)) for v in (x[0], y[0], math.prod(x[1:]), math.prod(w[2:]))]

    def copied(self, s):
        """The digit of a shape (cudnn_plans.Shape), 7 for NCHW and 0 for NHWC if nothing is near."""
        dtype = "bfloat16" if s.dtype == "float16" else s.dtype
        if (dtype, s.channels_last) not in self.COLUMNS:
            return 0
        column = self.COLUMNS.index((dtype, s.channels_last))
        key = (s.operation, *self.family(s.w, s.stride, s.groups, s.x[1]))
        rows = self.rows.get(key)
        if not rows:
            return 0 if s.channels_last else 7
        wanted = self.features(s.x[1:], s.w, s.y[1:])
        _, digits = min(rows, key=lambda row: sum((a - b) ** 2 for a, b in zip(row[0], wanted)))
        at = min(range(len(self.batches)), key=lambda i: abs(math.log2(self.batches[i]) - math.log2(max(s.x[0], 1))))
        return int(digits[column][at])
