"""Compares plans of kernels_cudnn.py with what measure/cudnn.py measured.

    python3 check_cudnn.py [--table] [--worst N] FILE.tsv ...

FILE is default.tsv, search.tsv, modules.tsv or sizes.tsv of a measurement, or one of results/published/h200/cudnn/
with its seed in the name: plain or gzip. For each call of an operator the requests and frees of the plan are set against the measured ones. Printed by kind of call:

    calls       calls compared
    same        the same requests, in the same order, each of the same size in units of 512 bytes
    1%          the highest sum of temporaries differs by at most 1 % of the bytes of the operands and outputs
    5%          the same, 5 %
    high, low   mean of the differences above and below, in percent of the bytes of the operands and outputs
--table answers from the table, as on a machine without cuDNN.
"""
import argparse
import gzip
import os
import sys
from types import SimpleNamespace

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from allocrig_tracer import kernels, kernels_cudnn  # noqa: E402
from allocrig_tracer import cudnn_plans, cudnn_sizes  # noqa: E402
sys.path.insert(0, HERE)
import cudnn as measured  # noqa: E402

CARD = SimpleNamespace(card=SimpleNamespace(name="NVIDIA H200"))


def lines_of(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


def rounded(size):
    return (size + 511) // 512 * 512


def of_measured(text):
    """[(name or None, bytes)] of requests, the peak of temporaries, and the release of the cache, from a column."""
    takes, sizes, live, peak = [], [], 0, 0
    for word in text.split():
        if word == "C" or word == "OOM":
            takes.append((word, 0))
        elif word[0] == "-":
            if word != "-old" and takes[[i for i, t in enumerate(takes) if t[0] in ("t", "o")][int(word[1:])]][0] == "t":
                live -= sizes[int(word[1:])]
        else:
            name, size = word.split(":")
            takes.append(("t" if name == "t" else "o", rounded(int(size))))
            sizes.append(rounded(int(size)))
            if name == "t":
                live += sizes[-1]
                peak = max(peak, live)
    return takes, peak


def of_plan(steps, outs):
    takes, sizes, live, peak, seen = [], [], 0, 0, set()
    storages = {}
    for i, out in enumerate(outs):
        size = out.untyped_storage().nbytes()
        if size:
            storages.setdefault(out.untyped_storage()._cdata, (i, rounded(size)))
    todo = dict(storages.values())
    for step in steps or []:
        if step[0] == "out" and step[1] in todo:
            takes.append(("o", todo.pop(step[1])))
        elif step[0] in ("take", "probe"):
            takes.append(("t", rounded(step[1])))
            sizes.append(rounded(step[1]))
            live += sizes[-1]
            peak = max(peak, live)
        elif step[0] == "give":
            live -= sizes[step[1]]
            seen.add(step[1])
        elif step[0] == "empty_cache":
            takes.append(("C", 0))
    takes += [("o", todo[i]) for i in sorted(todo)]
    return takes, peak


class Tally:
    def __init__(self):
        self.rows, self.worst = {}, []

    def add(self, key, plan, seen, bytes_of_operands, what):
        row = self.rows.setdefault(key, [0, 0, 0, 0, 0.0, 0.0])
        difference = (plan[1] - seen[1]) / max(bytes_of_operands, 1)
        row[0] += 1
        row[1] += [t for t in plan[0] if t[0] != "C"] == [t for t in seen[0] if t[0] != "C"]
        row[2] += abs(difference) <= 0.01
        row[3] += abs(difference) <= 0.05
        row[4] += max(difference, 0)
        row[5] += max(-difference, 0)
        self.worst.append((abs(plan[1] - seen[1]), difference, key, what, plan, seen))

    def show(self, worst):
        print(f"{'kind of call':44} {'calls':>6} {'same':>7} {'1%':>7} {'5%':>7} {'high':>7} {'low':>7}")
        for key, row in sorted(self.rows.items()):
            n = row[0]
            print(f"{key:44} {n:6} {row[1] / n:7.1%} {row[2] / n:7.1%} {row[3] / n:7.1%} {row[4] / n:7.2%} {row[5] / n:7.2%}")
        for _, difference, key, what, plan, seen in sorted(self.worst, key=lambda w: -w[0])[:worst]:
            print(f"{difference:+.2f} {key} {what}\n    plan {plan}\n    seen {seen}")


def strided(shape, layout, dtype):
    t = torch.empty(shape, dtype=dtype, device="meta")
    if layout == "l":
        t = t.contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
    return t


def convolutions(path, tally):
    search = os.path.basename(path).startswith("search")
    kernels_cudnn.searched.clear()
    for line in lines_of(path):
        c = line.rstrip("\n").split("\t")
        if c[0] not in ("forward", "backward") or "error" in c[16]:
            continue
        case = measured.Case.parse(c[1:12])
        dtype = measured.DTYPES[case.dtype]
        torch.backends.cudnn.allow_tf32 = c[13] == "1"
        ctx = SimpleNamespace(sm="9.0", sms=132, thread="main", stream=0, device=0, benchmark=search,
                              deterministic=c[12] == "1", session=CARD, card_bytes=150109880320)
        x, w = strided(case.x, case.layout[0], dtype), strided(case.w, case.layout[1], dtype)
        g = strided(case.output(), case.layout[2], dtype)
        geometry = (case.stride, case.padding, case.dilation, bool(case.transposed), case.output_padding, case.groups)
        if c[0] == "forward":
            outs = [g]
            steps = kernels.plan(torch.ops.aten.convolution.default, (x, w, None, *geometry), {}, outs, ctx)
        else:
            outs = [torch.empty_like(x), torch.empty_like(w)]
            if case.bias:
                outs.append(torch.empty(g.shape[1], dtype=dtype, device="meta"))
            steps = kernels.plan(torch.ops.aten.convolution_backward.default, (
                g, x, w, [g.shape[1]] if case.bias else None, *geometry, [True, True, bool(case.bias)]), {}, outs, ctx)
        kind = ("depthwise" if case.groups > 1 and case.groups == case.x[1] else "groups" if case.groups > 1 else
                "1x1" if max(case.w[2:]) == 1 and max(case.stride) == 1 and not any(case.padding) else "other")
        if case.transposed:
            kind = "transposed"
        shown = {"f32": "float32", "f64": "float64"}.get(case.dtype, "16 bit")
        layout = "NHWC" if "l" in case.layout[:2] else "NCHW"
        if shown == "float32" and c[13] != "1":
            shown += ", no TF32"
        call = "" if not search else " 1st" if c[15] == "1" else " 2nd"
        tally.add(f"{c[0]}{call} {kind} {shown} {layout}", of_plan(steps, outs), of_measured(c[16]), case.bytes(),
                  " ".join(c[1:14]))


def number(text):
    return {"True": True, "False": False, "None": None}.get(text, text)


def modules(path, tally):
    """Batch norm and recurrent networks; the arguments are those that the recorder wrote."""
    for line in lines_of(path):
        c = line.rstrip("\n").split("\t")
        if len(c) < 4 or "error" in c[3] or not c[1].startswith(("aten._cudnn_rnn", "aten.cudnn_batch_norm")):
            continue
        args = [argument(a) for a in c[2].split()]
        func = getattr(getattr(torch.ops.aten, c[1].split(".")[1]), "default")
        if "rnn" in c[1] and "packed=1" in c[0]:
            continue  # the recorder cuts the list of batch sizes short; sizes.tsv has packed ones
        ctx = SimpleNamespace(sm="9.0", sms=132, thread="main", stream=0, device=0, benchmark=False,
                              deterministic=False, session=CARD, card_bytes=150109880320)
        outs = outputs(c[1], args)
        steps = kernels.plan(func, args, {}, outs, ctx)
        total = sum(a.numel() * a.element_size() for a in args if isinstance(a, torch.Tensor))
        key = c[1].split(".")[1] + (" " + c[0].split()[0] if "rnn" in c[1] else "")
        tally.add(key, of_plan(steps, outs), of_measured(c[3]), total, c[0])


def argument(text):
    if text.startswith("list:"):
        _, count, shapes = text.split(":")
        shapes = shapes.split("/")
        return [torch.empty(measured.numbers(shapes[min(i, len(shapes) - 1)]), device="meta") for i in range(int(count))]
    parts = text.split(":")
    if len(parts) == 4:
        shape = measured.numbers(parts[1])
        t = torch.empty(shape, dtype=getattr(torch, parts[0]), device="meta")
        if parts[3] == "0" or parts[2] == "c":
            return t
        if int(parts[3]) < t.numel() * t.element_size():
            return torch.empty((), dtype=t.dtype, device="meta").expand(shape)
        return strided(shape, "l", t.dtype) if len(shape) > 3 else t.transpose(0, 1).contiguous().transpose(0, 1)
    if text.startswith("["):
        return [number(v) for v in text[1:-1].split(",") if v]
    value = number(text)
    if isinstance(value, str):
        value = float(value) if "." in value or "e" in value else int(value)
    return value


def outputs(name, args):
    empty = torch.empty
    if "batch_norm_backward" in name:
        return [torch.empty_like(args[0]), torch.empty_like(args[2]), torch.empty_like(args[2])]
    if "batch_norm" in name:
        saved = [args[0].shape[1] if args[5] else 0]
        return [torch.empty_like(args[0]), empty(saved, device="meta"), empty(saved, device="meta"),
                empty([0], device="meta")]
    x, dtype = args[0], args[0].dtype
    if name.endswith("_backward.default"):
        mode, hidden, projection, layers, both, mask = args[10], args[11], args[12], args[13], args[17], args[21]
        outs = [empty(x.shape, dtype=dtype, device="meta")] + [torch.empty_like(s) for s in args[4:6] if s is not None]
        if mask[3]:
            sizes, per = [], args[2]
            if per >= 4:
                outs.append(empty(cudnn_sizes.rnn_weights(mode, x.shape[-1], hidden, projection, layers, both),
                                  dtype=dtype, device="meta"))
            else:
                sizes = layer_weights(mode, x.shape[-1], hidden, projection, layers, both)
                outs += [empty(n, dtype=dtype, device="meta") for n in sizes]
        return outs
    mode, hidden, projection, layers, batch_first, train, both = (args[i] for i in (6, 7, 8, 9, 10, 12, 13))
    batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    directions, out = 2 if both else 1, projection or hidden
    made = [empty(batch * steps * directions * out, dtype=dtype, device="meta"),
            empty(layers * directions * batch * out, dtype=dtype, device="meta"),
            empty(layers * directions * batch * hidden if args[5] is not None else 0, dtype=dtype, device="meta"),
            empty(kernels_cudnn.reserve_bytes(args) if train else 0, dtype=torch.uint8, device="meta")]
    weights = cudnn_sizes.rnn_weights(mode, x.shape[-1], hidden, projection, layers, both)
    return made + [empty(0 if args[3] is not None else weights, dtype=dtype, device="meta")]


def layer_weights(mode, inputs, hidden, projection, layers, both):
    gates, directions, out, found = cudnn_sizes.GATES[mode], 2 if both else 1, projection or hidden, []
    for layer in range(layers):
        for _ in range(directions):
            found += [gates * hidden * (inputs if layer == 0 else out * directions), gates * hidden * out]
            found += [hidden * out] if projection else []
    return found


def sizes(path, tally):
    fields = "algo mode both dtype math inp hid proj layers packed steps batch total status wt wtr rtr winf rinf".split()
    types = {0: "float32", 2: "float16", 9: "bfloat16"}
    for line in lines_of(path):
        c = line.rstrip("\n").split("\t")
        if c[0] == "bn" and c[5] == "0":
            shape = measured.numbers(c[4])
            for name, value, backward in (("forward", c[6], False), ("backward", c[7], True)):
                got = cudnn_sizes.batch_norm_workspace(shape, c[1] == "2", types[int(c[2])], backward)
                tally.add(f"size of batch norm, {name}", ([("t", rounded(got))], got), (
                    [("t", rounded(int(value)))], int(value)), int(value), line[:60])
        if c[0] != "rnn":
            continue
        r = dict(zip(fields, map(int, c[1:])))
        dtype = types[r["dtype"]]
        if r["status"] or r["proj"] and r["algo"]:
            continue
        chosen = [cudnn_sizes.rnn_algorithm(r["mode"], r["hid"], r["proj"], r["layers"], r["both"], r["inp"],
                                            r["batch"], r["packed"], dtype, forward, "9.0", 132)
                  for forward in (True, False)]
        if r["algo"] not in chosen:
            continue  # PyTorch does not ask for this algorithm
        rows = r["total"] if r["packed"] else r["steps"] * r["batch"]
        size = 4 if dtype == "float32" else 2
        arguments = (r["algo"], r["mode"], r["inp"], r["hid"], r["proj"], r["layers"], r["both"], rows, r["steps"],
                     r["batch"], r["packed"], dtype)
        kind = ("LSTM with projection" if r["proj"] else "packed" if r["packed"] else "standard" if not r["algo"] else
                "small hidden size" if r["algo"] == 3 else "persistent")
        for name, value, got in (
                ("workspace of training", r["wtr"], cudnn_sizes.rnn_workspace(*arguments, True)),
                ("workspace of inference", r["winf"], cudnn_sizes.rnn_workspace(*arguments, False)),
                ("reserve", r["rtr"], cudnn_sizes.rnn_reserve(r["mode"], r["hid"], r["proj"], r["layers"], r["both"],
                                                              rows, size))):
            tally.add(f"{name}, {kind}", ([("t", rounded(got))], got), ([("t", rounded(value))], value), value, line[:90])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("files", nargs="+")
    options.add_argument("--table", action="store_true")
    options.add_argument("--worst", type=int, default=0)
    o = options.parse_args()
    if o.table:
        plain = cudnn_plans.Source.__init__
        cudnn_plans.Source.__init__ = lambda self, name, sm: plain(self, name, sm, use_library=False)
    for path in o.files:
        tally = Tally()
        name = os.path.basename(path)
        (modules if name.startswith("modules") else sizes if name.startswith("sizes") else convolutions)(path, tally)
        print(name)
        tally.show(o.worst)


if __name__ == "__main__":
    main()
