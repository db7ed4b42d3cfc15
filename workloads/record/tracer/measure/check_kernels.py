#!/usr/bin/env python3
"""Compares the plans of allocrig_tracer/kernels.py with the measured sequences. Needs no PyTorch.

    python3 check_kernels.py KERNELS.tsv.gz... [--operator REGEX] [--misses N] [--least SHARE]
                             [--nothing FILE] [--every N] [--table]

For each operator: the rows measured, the share of rows whose sequence of allocations and frees is
exact (bytes and order), the share that is exact after rounding each size to the 512 bytes of the
caching allocator, and the largest difference of the peak bytes of one call, as bytes and as a share
of the measured peak. Memory that is kept for the process is checked by its size alone.
--nothing writes the operators that were seen to allocate nothing but their outputs, in order.
--least fails if the share of exact rows of all operators is below SHARE.
"""
import argparse
import collections
import gzip
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

TOKEN = re.compile(r"([otkf])(\d+)(?:=(\d+))?|g")


class Tensor:
    """A plain object with what a rule reads of a tensor."""

    def __init__(self, dtype, shape, stride, device, storage):
        self.dtype, self.shape, self._stride, self.device = dtype, tuple(shape), stride, device
        self.storage = storage

    def stride(self):
        return self._stride

    def is_contiguous(self):
        from allocrig_tracer.kernels_shape import contiguous
        return contiguous(self)


class Sparse:
    def __init__(self, dtype, shape, layout, device):
        self.dtype, self.shape, self.layout, self.device = dtype, tuple(shape), layout, device


class Context:
    sm, sms, stream, device, benchmark, deterministic = 9.0, 132, 0, 0, False, False
    allow_tf32, torch_version, card_bytes = False, "2.11.0+cu130", 150754820096

    def __init__(self, thread, deterministic=False):
        self.thread, self.deterministic_algorithms = thread, deterministic


def value(item):
    if isinstance(item, list):
        if item and item[0] == "T" and len(item) == 6:
            return Tensor(*item[1:])
        if item and item[0] == "S" and len(item) == 5:
            return Sparse(*item[1:])
        return [value(v) for v in item]
    if isinstance(item, dict):
        return {k: value(v) for k, v in item.items()}
    return item


def read(files):
    for name in files:
        opened = gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(
            name, encoding="utf-8")
        with opened as lines:
            next(lines)
            for line in lines:
                yield line.rstrip("\n").split("\t")


def fresh(outs):
    """The places, among the outputs, of the storages that the operator made on the card."""
    return [i for i, out in enumerate(outs) if isinstance(out, Tensor) and out.storage != "="
            and out.device == "cuda" and out.storage > 0]


def measured_steps(text, places):
    """The measured sequence as (kind, number, bytes), without kept memory, renumbered.

    Frees of what earlier operators kept (g) are not the operator's."""
    steps, numbers, kept = [], {}, []
    for match in TOKEN.finditer(text):
        kind, number, size = match.groups()
        if kind is None:
            continue
        if kind == "k":
            kept.append(int(size))
        elif kind == "o":
            if int(number) < len(places):  # others are the parts of sparse tensors
                steps.append(("o", places[int(number)], int(size)))
        elif kind == "t":
            numbers[number] = len(numbers)
            steps.append(("t", numbers[number], int(size)))
        elif number in numbers:
            steps.append(("f", numbers[number], 0))
    return steps, kept


def planned_steps(plan, outs, places):
    steps, kept, done, given, taken = [], [], set(), set(), []
    for step in plan or []:
        if step[0] == "out":
            if step[1] in places and step[1] not in done:
                done.add(step[1])
                steps.append(("o", step[1], step[2] if len(step) > 2 else outs[step[1]].storage))
        elif step[0] == "take":
            steps.append(("t", len(taken), step[1]))
            taken.append(step[1])
        elif step[0] == "give":
            given.add(step[1])
            steps.append(("f", step[1], 0))
        elif step[0] == "keep":
            kept.append(step[2])
    steps += [("o", p, outs[p].storage) for p in places if p not in done]
    steps += [("f", n, 0) for n in range(len(taken)) if n not in given]
    return steps, kept


def sparse(args):
    """Rules read strided tensors alone."""
    return any(isinstance(a, Sparse) for a in args)


def rounded(steps):
    return [(k, n, -(-size // 512) * 512) for k, n, size in steps]


def peak(steps):
    live, most, sizes = 0, 0, {}
    for kind, number, size in steps:
        if kind in "ot":
            live += size
            if kind == "t":
                sizes[number] = size
            most = max(most, live)
        elif kind == "f":
            live -= sizes.pop(number, 0)
    return most


def text_of(steps):
    return " ".join("f%d" % n if k == "f" else "%s%d=%d" % (k, n, s) for k, n, s in steps)


def compare(files, options):
    from allocrig_tracer import kernels
    count = collections.defaultdict(lambda: [0, 0, 0, 0, 0.0, 0])
    quiet, shown, number = {}, collections.Counter(), {}
    for row in read(files):
        operator, _, thread, arguments, outputs, sequence, case = row
        number[operator] = number.get(operator, -1) + 1
        if number[operator] % options.every or not re.fullmatch(options.operator, operator):
            continue
        args, kwargs = value(json.loads(arguments))
        outs = value(json.loads(outputs))
        places = fresh(outs)
        real, real_kept = measured_steps(sequence, places)
        ctx = Context(thread, case.startswith("det_"))
        plan = kernels.plan(operator, args, kwargs, outs, ctx)
        if operator in kernels.UNREAD and not sparse(args):
            raise SystemExit("%s: %s in %s" % (operator, kernels.UNREAD[operator], row[3][:300]))
        ours, our_kept = planned_steps(plan, outs, places)
        line = count[operator]
        line[0] += 1
        hit = ours == real and all(k in our_kept for k in real_kept)
        line[1] += hit
        line[2] += rounded(ours) == rounded(real) and all(k in our_kept for k in real_kept)
        gap = abs(peak(ours) - peak(real))
        line[3] = max(line[3], gap)
        line[4] = max(line[4], gap / max(1, peak(real)))
        line[5] += any(step[0] == "t" for step in real)
        plain = [s for s in real if s[0] != "o"] == [] and not real_kept and [
            s[1] for s in real] == sorted(s[1] for s in real)
        quiet[operator] = quiet.get(operator, True) and plain
        if not hit and shown[operator] < options.misses:
            shown[operator] += 1
            print("%s %s\n  args %s\n  real %s%s\n  ours %s%s" % (
                operator, case, brief(args, kwargs, outs), text_of(real),
                " kept %s" % real_kept if real_kept else "", text_of(ours),
                " kept %s" % our_kept if our_kept else ""))
    return count, quiet


def brief(args, kwargs, outs):
    def one(item):
        if isinstance(item, Tensor):
            plain = item.is_contiguous()
            return "%s%s%s%s" % (item.dtype, list(item.shape), "" if plain else item.stride(),
                                 "" if item.device == "cuda" else item.device)
        if isinstance(item, list):
            return "[%s]" % ", ".join(one(v) for v in item[:12])
        return str(item)
    return "%s %s -> %s" % (one(args), {k: one(v) for k, v in kwargs.items()}, one(outs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--operator", default=".*")
    parser.add_argument("--misses", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--nothing")
    parser.add_argument("--every", type=int, default=1, help="check every Nth row of an operator")
    parser.add_argument("--table", action="store_true", help="print the table as Markdown")
    parser.add_argument("--all", action="store_true", help="list the exact operators as well")
    options = parser.parse_args()
    count, quiet = compare(options.files, options)
    from allocrig_tracer import kernels
    rows = sum(c[0] for c in count.values())
    own = sum(c[5] for c in count.values())
    hits = sum(c[1] for c in count.values())
    if options.nothing:
        with open(options.nothing, "w", encoding="utf-8") as out:
            out.write("# Operators that allocated their outputs alone, in order: operator, rows\n")
            for name in sorted(q for q, plain in quiet.items() if plain):
                out.write("%s\t%d\n" % (name, count[name][0]))
    line = "%-52s %6d %6d %5.1f%% %5.1f%% %11d %6.1f%%%s"
    head = "%-52s %6s %6s %6s %6s %11s %7s" % ("operator", "rows", "own", "exact", "512 B",
                                               "peak bytes", "peak")
    if options.table:
        line = "| `%s` | %d | %d | %.1f %% | %.1f %% | %d | %.1f %%%s |"
        head = ("| operator | rows | with own memory | exact | exact after rounding | peak, bytes | "
                "peak, share |\n| --- | --- | --- | --- | --- | --- | --- |")
    print(head)
    for name in sorted(count):
        c = count[name]
        if c[1] == c[0] and not options.all:
            continue
        print(line % (
            name, c[0], c[5], 100 * c[1] / c[0], 100 * c[2] / c[0], c[3], 100 * c[4],
            "" if kernels.known(name) or quiet[name] else "  no rule"))
    exact = sum(1 for c in count.values() if c[0] == c[1])
    print("%d operators, %d of them exact in all rows; %d rows, %d with own memory, %.2f%% exact" % (
        len(count), exact, rows, own, 100 * hits / max(1, rows)))
    if hits < options.least * rows:
        raise SystemExit("the share of exact rows is below %.4f" % options.least)


if __name__ == "__main__":
    main()
