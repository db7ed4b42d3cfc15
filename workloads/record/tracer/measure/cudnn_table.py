"""Writes kernels/cudnn_plans.tsv: asks cuDNN, without a card, for the plans of the layers in cudnn_shapes.tsv.

    python3 cudnn_table.py > ../allocrig_tracer/kernels/cudnn_plans.tsv

It needs cuDNN 9.8 or later (pip install nvidia-cudnn-cu13) and no GPU. allocrig_tracer/cudnn_table.py reads the file.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from allocrig_tracer import cudnn_library, cudnn_plans  # noqa: E402
from allocrig_tracer.cudnn_table import Table  # noqa: E402

sys.path.insert(0, HERE)
import cudnn as measured  # noqa: E402

BATCHES = (1, 4, 16, 64, 256)


def digit(size, operands):
    """The operands whose copies explain a workspace best, as a sum of 1, 2 and 4."""
    best = min(range(8), key=lambda bits: abs(size - sum(v for v, bit in zip(operands, (1, 2, 4)) if bits & bit)))
    return str(best)


def main():
    source = cudnn_plans.Source("NVIDIA H200", "9.0")
    if source.planner is None:
        sys.exit("cudnn_table.py: no cuDNN 9.8 or later: pip install nvidia-cudnn-cu13")
    print(f"# made by measure/cudnn_table.py, cuDNN {source.planner.version()}, card NVIDIA H200")
    print("# operation, input, weight, output, stride, padding, dilation, groups, then digits per batch size of "
          + ", ".join(f"{d} {'NHWC' if last else 'NCHW'}" for d, last in Table.COLUMNS))
    print("#batches\t" + ",".join(str(b) for b in BATCHES))
    seen = set()
    for line in open(os.path.join(HERE, "cudnn_shapes.tsv")):
        fields = line.rstrip("\n").split("\t")
        if fields[0] != "conv":
            continue
        values = ["1x" + fields[2]] + fields[3:10] + ["0", "f32", "ccc"]
        case = measured.Case.parse(values)
        if case.transposed or case.groups == case.x[1] > 1:
            continue
        x, w, y = case.x, case.w, case.output()
        geometry = [case.stride, case.padding, case.dilation]
        if len(x) == 3:
            x, w, y = (s[:2] + [1] + s[2:] for s in (x, w, y))
            geometry = [[1] + geometry[0], [0] + geometry[1], [1] + geometry[2]]
        for operation in (cudnn_library.FORWARD, cudnn_library.BACKWARD_INPUT, cudnn_library.BACKWARD_WEIGHT):
            if operation != cudnn_library.BACKWARD_WEIGHT and max(w[2:]) == 1 and max(geometry[0]) == 1:
                continue  # a matrix product: see cudnn_plans.leading
            columns = []
            for dtype, last in Table.COLUMNS:
                text = ""
                for batch in BATCHES:
                    shape = cudnn_plans.Shape(
                        operation, tuple([batch] + x[1:]), tuple(w), tuple([batch] + y[1:]), *map(tuple, geometry),
                        case.groups, dtype, last, False, True)
                    size = next((p[1] for p in source.planner.plans(
                        operation, *map(list, shape[1:7]), dtype, last)), 0)
                    text += digit(size, cudnn_plans.operands(shape))
                columns.append(text)
            row = "\t".join([str(operation)] + [measured.text(v) for v in (x[1:], w, y[1:], *geometry)]
                            + [str(case.groups)] + columns)
            if row not in seen:
                seen.add(row)
                print(row)


if __name__ == "__main__":
    main()
