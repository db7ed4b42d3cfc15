"""Measures what PyTorch allocates around cuDNN: convolutions, recurrent networks, batch norm, CTC loss.

    python3 cudnn.py FOLDER [--seed N] [--calls N] [--PART SECONDS ...]

The parts are plans, families, shares, grid, sizes, default, search, limited and modules; 0 seconds leave a part out. Every
part writes a file of tab-separated lines as it goes, so that an interrupted run is of use:

  device.json         the properties of the card as cuDNN writes them
  info.txt            card, driver, versions
  clusters.tsv        how many clusters of thread blocks of each size the card runs at once
  plans.tsv           workspaces of the plans of drawn convolutions, asked of cuDNN with a handle; nothing runs
  families.tsv        the same for a few sizes of each kind of convolution
  shares.tsv          the first plans of convolutions, mostly of weight gradients, with engine, bytes and knobs
  grid.tsv            the first plans of the kinds of cudnn_cases.py, with their knobs
  sizes.tsv           workspace, reserve and weight space of recurrent networks, batch norm, CTC; nothing runs
  default.tsv         requests of aten.convolution and aten.convolution_backward, torch.backends.cudnn.benchmark off
  search.tsv          the same with benchmark on
  limited.tsv         the same with benchmark on and with little memory for the process
  modules.tsv         requests of each operator of modules with nn.LSTM, nn.GRU, nn.RNN, nn.BatchNorm, CTC loss

A column of requests lists them in order: o0:BYTES is the storage of output 0, t:BYTES a temporary, -K
the free of the K-th request of the call, C a release of cached memory to the device. The shapes are those
of cudnn_shapes.tsv with batch sizes, types and layouts drawn by the seed, and a random grid; no shape is
taken from a program that is tested.
"""
import argparse
import ctypes
import os
import random
import sys
import threading
import time
import zlib

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "allocrig_tracer"))
import cudnn_library as library  # noqa: E402
from cudnn_cases import NAMES, Case, cases, grid_cases, numbers, text, weight_cases  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}


class Writer:
    def __init__(self, folder, name, header):
        self.file = open(os.path.join(folder, name), "w")
        self.write(*header)

    def write(self, *columns):
        self.file.write("\t".join(str(c) for c in columns) + "\n")
        self.file.flush()


def until(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


# Requests of one call

def requests(call):
    """(result, requests in order as text, seconds)."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=4000,
                                             clear_history=True)
    began = time.monotonic()
    try:
        result = call()
    except Exception as error:
        result = error
    took = time.monotonic() - began
    traces = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    torch.cuda.memory._record_memory_history(enabled=None)
    if isinstance(result, Exception):
        return result, f"error {type(result).__name__}: {str(result).splitlines()[0][:120]}", took
    return result, describe(traces, result), took


def flatten(result):
    for value in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(value, (list, tuple)):
            yield from flatten(value)
        elif isinstance(value, torch.Tensor):
            yield value
        else:
            yield None


def describe(traces, result):
    outputs = {}
    for i, tensor in enumerate(flatten(result)):
        if tensor is not None and tensor.is_cuda and tensor.untyped_storage().nbytes():
            outputs.setdefault(tensor.untyped_storage().data_ptr(), i)
    last = {t["addr"]: i for i, t in enumerate(traces) if t["action"] == "alloc"}
    parts, live, count = [], {}, 0
    for i, t in enumerate(traces):
        if t["action"] == "alloc":
            name = f"o{outputs[t['addr']]}" if t["addr"] in outputs and last[t["addr"]] == i else "t"
            parts.append(f"{name}:{t['size']}")
            live[t["addr"]] = count
            count += 1
        elif t["action"] == "free_requested":
            parts.append(f"-{live.pop(t['addr'], 'old')}")
        elif t["action"] == "segment_free" and parts[-1:] != ["C"]:
            parts.append("C")
        elif t["action"] == "oom":
            parts.append("OOM")
    return " ".join(parts)


# Convolutions

def operands(case):
    def make(shape, layout):
        t = torch.randn(shape, device="cuda", dtype=DTYPES[case.dtype])
        if layout == "l":
            t = t.contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
        return t
    out = case.output()
    return (make(case.x, case.layout[0]), make(case.w, case.layout[1]), make(out, case.layout[2]),
            torch.randn(out[1], device="cuda", dtype=DTYPES[case.dtype]) if case.bias else None)


def convolutions(writer, seed, seconds, benchmark, limit, room=None, calls=2):
    """Each case forward and backward; a second call finds the plan of the first.

    room: bytes that the process may take beyond the operands, as a multiple of them.
    """
    torch.backends.cudnn.benchmark = benchmark
    source = cases(seed, limit)
    draw = random.Random(seed + 1)
    for _ in until(seconds):
        case = next(source)
        deterministic = draw.random() < 0.15
        tf32 = draw.random() >= 0.15
        torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = deterministic, tf32
        try:
            x, w, gradient, bias = operands(case)
            geometry = (case.stride, case.padding, case.dilation, bool(case.transposed), case.output_padding,
                        case.groups)
            backend = str(torch._C._select_conv_backend(x, w, bias, *geometry)).split(".")[-1]
            mask = [True, True, bool(case.bias)]
            forward = lambda: torch.ops.aten.convolution.default(x, w, bias, *geometry)
            backward = lambda: torch.ops.aten.convolution_backward.default(
                gradient, x, w, [case.w[1] * case.groups if case.transposed else case.w[0]] if case.bias else None,
                *geometry, mask)
            if room is not None:
                torch.cuda.empty_cache()
                whole = torch.cuda.get_device_properties(0).total_memory
                torch.cuda.set_per_process_memory_fraction(
                    min(1, (torch.cuda.memory_reserved() + room * case.bytes() + (8 << 20)) / whole))
            for name, call in (("forward", forward), ("backward", backward)):
                for number in range(1, calls + 1):
                    result, line, took = requests(call)
                    del result
                    writer.write(name, case.line(), int(deterministic), int(tf32), backend, number, line,
                                 f"{took:.4f}")
        except Exception as error:
            writer.write("case", case.line(), int(deterministic), int(tf32), "", 0,
                         f"error {type(error).__name__}: {str(error).splitlines()[0][:120]}", "0")
        x = w = gradient = bias = None
        if room is not None:
            torch.cuda.set_per_process_memory_fraction(1.0)
        if torch.cuda.memory_reserved() > 40 << 30:
            torch.cuda.empty_cache()


def plan_line(planner, operation, x, w, y, fields, dtype, last):
    began = time.monotonic()
    plans = [p[:2] for p in planner.plans(operation, x, w, y, *fields, NAMES[dtype], last)]
    line = " ".join(f"{e}:{b}" for e, b in plans)
    return (operation, text(x), text(w), text(y), *(text(f) for f in fields), dtype, int(last), len(plans),
            line, max((b for _, b in plans), default=0), zlib.crc32(line.encode()), f"{time.monotonic() - began:.4f}")


def plan_lists(writer, planner, seed, seconds):
    """All plans of drawn cases: does cuDNN answer without the card as it does with it?"""
    source = cases(seed, 16 << 30)
    for _ in until(seconds):
        case = next(source)
        if case.transposed:
            continue
        x, w, y = case.x, case.w, case.output()
        fields = (case.stride, case.padding, case.dilation)
        if len(x) == 3:
            x, w, y = (s[:2] + [1] + s[2:] for s in (x, w, y))
            fields = ([1] + case.stride, [0] + case.padding, [1] + case.dilation)
        for operation in (library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT):
            writer.write(*plan_line(planner, operation, x, w, y, fields, case.dtype, "l" in case.layout[:2]))


def plan_families(writer, planner, seconds):
    """All plans of a few sizes of each family, in an order in which kernels are loaded once."""
    sizes = ((8, 64, 56, 128), (32, 256, 14, 256), (2, 128, 64, 320), (64, 48, 28, 96))
    kernels = ((1, 1, 1), (3, 1, 1), (3, 2, 1), (5, 1, 1), (7, 2, 1), (3, 1, 0), (2, 2, 1))
    running = until(seconds)
    for kernel, stride, dense in kernels:
        for dtype, last in (("f32", False), ("f32", True), ("bf16", True), ("bf16", False), ("f16", True)):
            for operation in (library.FORWARD, library.BACKWARD_INPUT, library.BACKWARD_WEIGHT):
                for n, c, h, k in sizes:
                    try:
                        next(running)
                    except StopIteration:
                        return
                    pad = kernel // 2 if kernel % 2 else 0
                    out = (h + 2 * pad - kernel) // stride + 1
                    w = [k, c, kernel, kernel] if dense else [c, 1, kernel, kernel]
                    writer.write(*plan_line(planner, operation, [n, c, h, h], w, [n, w[0], out, out],
                                            ([stride] * 2, [pad] * 2, [1, 1]), dtype, last))


def described(planner, plan):
    knobs = ",".join(f"{k}={v}" for k, v in sorted(planner.knobs(plan[2]).items()))
    return f"{plan[0]}:{plan[1]}:{knobs}"


def plan_grid(writer, planner, seed, seconds, kinds, most=1):
    """The first plans of each case of a grid on the card, up to one that takes nothing, with their knobs."""
    source = grid_cases(random.Random(seed), 4 << 30, kinds)
    for _ in until(seconds):
        operation, case = next(source)
        y, last, found = case.output(), case.layout[0] == "l", []
        for plan in planner.plans(operation, case.x, case.w, y, case.stride, case.padding, case.dilation,
                                  NAMES[case.dtype], last):
            found.append(described(planner, plan))
            if len(found) == most or not plan[1]:
                break
        writer.write(operation, text(case.x), text(case.w), text(y), text(case.stride), text(case.padding),
                     text(case.dilation), case.dtype, int(last), 1, " ".join(found))


def plan_shares(writer, planner, seed, seconds):
    """The first plans with their knobs: what a card divides, and into how many parts."""
    draw = random.Random(seed)
    drawn, more = cases(seed, 4 << 30), weight_cases(random.Random(seed + 1), 4 << 30)
    for _ in until(seconds):
        case = next(more if draw.random() < .6 else drawn)
        if case.transposed:
            continue
        x, w, y = case.x, case.w, case.output()
        fields = (case.stride, case.padding, case.dilation)
        if len(x) == 3:
            x, w, y = (s[:2] + [1] + s[2:] for s in (x, w, y))
            fields = ([1] + case.stride, [0] + case.padding, [1] + case.dilation)
        operation = draw.choice((library.BACKWARD_WEIGHT,) * 4 + (library.FORWARD, library.BACKWARD_INPUT))
        last = "l" in case.layout[:2]
        for tf32 in (True, False) if case.dtype == "f32" and draw.random() < .1 else (True,):
            found = []
            for plan in planner.plans(operation, x, w, y, *fields, NAMES[case.dtype], last, allow_tf32=tf32):
                found.append(described(planner, plan))
                if len(found) == 3:
                    break
            writer.write(operation, text(x), text(w), text(y), *(text(f) for f in fields), case.dtype, int(last),
                         int(tf32), " ".join(found))


# Sizes that cuDNN's older interface tells

def rnn_sizes(writer, cudnn, handle, seed, seconds):
    draw = random.Random(seed)
    ptr = ctypes.c_void_p
    def new(create):
        p = ptr()
        assert not create(ctypes.byref(p))
        return p
    dropout, rnn, data = (new(f) for f in (
        cudnn.cudnnCreateDropoutDescriptor, cudnn.cudnnCreateRNNDescriptor, cudnn.cudnnCreateRNNDataDescriptor))
    cudnn.cudnnSetDropoutDescriptor(dropout, handle, ctypes.c_float(0), None, ctypes.c_size_t(0),
                                    ctypes.c_ulonglong(0))
    state = ctypes.c_size_t()
    cudnn.cudnnDropoutGetStatesSize(handle, ctypes.byref(state))
    writer.write("dropout_state", state.value)
    widths = (1, 3, 8, 10, 16, 20, 32, 40, 64, 80, 100, 128, 192, 200, 256, 300, 320, 384, 512, 600, 650, 768, 1024,
              1200, 1500, 2048)
    for _ in until(seconds):
        mode, layers, both = draw.randrange(4), draw.choice((1, 1, 1, 2, 2, 3, 4, 6)), draw.randrange(2)
        hidden, inputs = draw.choice(widths), draw.choice(widths)
        projection = draw.choice([w for w in widths if w < hidden] or [0]) if mode == 2 and draw.random() < .1 else 0
        dtype = draw.choice((0, 0, 2, 9))
        steps, batch = draw.choice((1, 2, 5, 10, 16, 20, 35, 50, 64, 70, 100, 128, 200, 256, 500, 512, 1000)), \
            draw.choice((1, 2, 3, 4, 6, 8, 10, 16, 20, 24, 32, 40, 48, 64, 80, 100, 128, 192, 256, 512))
        if steps * batch * hidden * layers > 1 << 28:
            continue
        algorithm = draw.choice((0, 0, 1, 3))
        packed = int(draw.random() < 0.2)
        lengths = [steps] * batch
        if packed:
            lengths = sorted((draw.randint(1, steps) for _ in range(batch)), reverse=True)
            lengths[0] = steps
        math = 1 if dtype == 2 else draw.choice((0, 0, 3))
        status = cudnn.cudnnSetRNNDescriptor_v8(
            rnn, algorithm, mode, 2, both, 0, dtype, 0 if dtype in (2, 9) else dtype, math, inputs, hidden,
            projection or hidden, layers, dropout, 0 if packed else 1)
        status = status or cudnn.cudnnSetRNNDataDescriptor(
            data, dtype, 1 if packed else 0, steps, batch, inputs, (ctypes.c_int * batch)(*lengths), None)
        found = []
        weights = ctypes.c_size_t()
        if not status:
            status = cudnn.cudnnGetRNNWeightSpaceSize(handle, rnn, ctypes.byref(weights))
        for training in (1, 0):
            work, reserve = ctypes.c_size_t(), ctypes.c_size_t()
            status = status or cudnn.cudnnGetRNNTempSpaceSizes(handle, rnn, training, data, ctypes.byref(work),
                                                               ctypes.byref(reserve))
            found += [work.value, reserve.value]
        writer.write("rnn", algorithm, mode, both, dtype, math, inputs, hidden, projection, layers, packed, steps,
                     batch, sum(lengths), status, weights.value, *found)


def norm_sizes(writer, cudnn, handle, seed, seconds):
    draw = random.Random(seed)
    rows = [line.rstrip("\n").split("\t") for line in open(os.path.join(HERE, "cudnn_shapes.tsv"))]
    rows = [numbers(r[2]) for r in rows if r[0] == "bn"]
    x, w = ctypes.c_void_p(), ctypes.c_void_p()
    cudnn.cudnnCreateTensorDescriptor(ctypes.byref(x))
    cudnn.cudnnCreateTensorDescriptor(ctypes.byref(w))

    def describe_tensor(descriptor, dtype, shape, last):
        shape = shape + [1] * (4 - len(shape))
        strides = library.packed_strides(shape, last)
        cudnn.cudnnSetTensorNdDescriptor(descriptor, dtype, len(shape), (ctypes.c_int * len(shape))(*shape),
                                         (ctypes.c_int * len(shape))(*strides))
    for _ in until(seconds):
        if draw.random() < 0.6:
            shape = draw.choice(rows)
        else:
            shape = [draw.choice((1, 2, 3, 5, 8, 16, 30, 64, 100, 128, 256, 300, 512, 1000, 1024, 2048, 4096))] + [
                int(4 ** draw.uniform(0, 4.5))] * draw.choice((0, 1, 2, 2, 3))
        shape = [draw.choice((1, 2, 3, 4, 8, 16, 32, 50, 64, 100, 128, 256, 512))] + shape
        n = 1
        for v in shape:
            n *= v
        if n > 1 << 31:
            continue
        dtype, last = draw.choice((0, 0, 2, 9)), draw.randrange(2) if len(shape) >= 4 else 0
        mode = 0 if len(shape) == 2 else 2 if last else 1
        describe_tensor(x, dtype, shape, last)
        describe_tensor(w, 0, [1, shape[1]] + [1] * (len(shape) - 2), 0)
        forward, backward, reserve = (ctypes.c_size_t() for _ in range(3))
        status = cudnn.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
            handle, mode, 0, x, x, x, w, None, ctypes.byref(forward))
        status = status or cudnn.cudnnGetBatchNormalizationBackwardExWorkspaceSize(
            handle, mode, 0, x, x, x, None, x, w, None, ctypes.byref(backward))
        status = status or cudnn.cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
            handle, mode, 0, None, x, ctypes.byref(reserve))
        writer.write("bn", mode, dtype, last, text(shape), status, forward.value, backward.value, reserve.value)


def ctc_sizes(writer, cudnn, handle, seed, seconds):
    draw = random.Random(seed)
    desc, probabilities = ctypes.c_void_p(), ctypes.c_void_p()
    cudnn.cudnnCreateCTCLossDescriptor(ctypes.byref(desc))
    cudnn.cudnnCreateTensorDescriptor(ctypes.byref(probabilities))
    cudnn.cudnnSetCTCLossDescriptorEx(desc, 0, 1, 1)
    for _ in until(seconds):
        t, n, a = draw.choice((10, 20, 50, 100, 200, 400, 800)), draw.choice((1, 2, 4, 8, 16, 32, 64)), \
            draw.choice((5, 20, 28, 32, 50, 100, 1000, 5000))
        cudnn.cudnnSetTensorNdDescriptor(probabilities, 0, 3, (ctypes.c_int * 3)(t, n, a),
                                         (ctypes.c_int * 3)(n * a, a, 1))
        lengths = [draw.randint(1, min(t, 255)) for _ in range(n)]
        labels = [draw.randint(1, a - 1) for _ in range(sum(lengths))]
        for algorithm in (0, 1):
            size = ctypes.c_size_t()
            status = cudnn.cudnnGetCTCLossWorkspaceSize(
                handle, probabilities, probabilities, (ctypes.c_int * len(labels))(*labels),
                (ctypes.c_int * n)(*lengths), (ctypes.c_int * n)(*([t] * n)), algorithm, desc, ctypes.byref(size))
            writer.write("ctc", algorithm, t, n, a, max(lengths), sum(lengths), status, size.value)


# Clusters

CLUSTERS = r"""
#include <cstdio>
__global__ void kernel(int *p) { extern __shared__ int s[]; if (p) p[0] = s[0]; }
int main() {
    const int shared = 200 << 10;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int size = 1; size <= 16; size++) {
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(size * 1024), config.blockDim = dim3(384), config.dynamicSmemBytes = shared;
        cudaLaunchAttribute a;
        a.id = cudaLaunchAttributeClusterDimension;
        a.val.clusterDim.x = size, a.val.clusterDim.y = a.val.clusterDim.z = 1;
        config.attrs = &a, config.numAttrs = 1;
        int count = -1;
        cudaError_t e = cudaOccupancyMaxActiveClusters(&count, kernel, &config);
        printf("%d\t%d\t%s\n", size, count, cudaGetErrorName(e));
    }
}
"""


def clusters(folder):
    """A kernel that leaves no room for a second block on a multiprocessor, as the large tiles of cuDNN do."""
    source = os.path.join(folder, "clusters")
    with open(source + ".cu", "w") as f:
        f.write(CLUSTERS)
    os.system(f"nvcc -arch=native -o {source} {source}.cu && {source} > {source}.tsv; rm -f {source} {source}.cu")


# Operators of modules

class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Writes the requests of each operator whose name has one of the words."""

    def __init__(self, writer, case, words):
        super().__init__()
        self.writer, self.case, self.words = writer, case, words

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not any(word in str(func) for word in self.words):
            return func(*args, **(kwargs or {}))
        result, line, _ = requests(lambda: func(*args, **(kwargs or {})))
        shown = []
        for a in args:
            if isinstance(a, torch.Tensor):
                shown.append(str(a.dtype).split(".")[-1] + ":" + text(a.shape) + ":" + (
                    "c" if a.is_contiguous() else "l") + f":{a.untyped_storage().nbytes()}")
            elif isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor):
                shown.append(f"list:{len(a)}:" + "/".join(text(t.shape) for t in a[:5]))
            else:
                shown.append(str(a)[:60].replace(" ", ""))
        self.writer.write(self.case, func, " ".join(shown), line)
        if isinstance(result, Exception):
            raise result
        return result


def modules(writer, seed, seconds):
    nn, draw = torch.nn, random.Random(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = False, True
    words = ("rnn", "lstm", "gru", "batch_norm", "ctc", "cudnn", "miopen")
    rows = [line.rstrip("\n").split("\t") for line in open(os.path.join(HERE, "cudnn_shapes.tsv"))]
    rows = [numbers(r[2]) for r in rows if r[0] == "bn"]
    for _ in until(seconds):
        kind = draw.choice(("rnn", "rnn", "bn", "bn", "ctc"))
        dtype = draw.choice(("f32", "f32", "bf16", "f16"))
        try:
            if kind == "rnn":
                cell = draw.choice(("LSTM", "LSTM", "GRU", "RNN"))
                i, h = draw.choice((8, 40, 64, 100, 128, 256, 300, 512)), draw.choice((16, 64, 100, 128, 200, 256,
                                                                                      300, 512, 650, 1024))
                layers, both, first = draw.choice((1, 2, 3)), draw.random() < .3, draw.random() < .5
                more = {"proj_size": h // 2} if cell == "LSTM" and draw.random() < .1 else {}
                drop = draw.choice((0, 0, 0.3)) if layers > 1 else 0
                t, n = draw.choice((5, 20, 35, 70, 128)), draw.choice((1, 4, 8, 20, 32, 64))
                flat, training, packed = draw.random() < .8, draw.random() < .8, draw.random() < .2
                bias = draw.random() < .85
                name = f"{cell} i={i} h={h} l={layers} b={int(both)} f={int(first)} d={drop} t={t} n={n} " \
                       f"{dtype} flat={int(flat)} train={int(training)} packed={int(packed)} bias={int(bias)} {more}"
                net = getattr(nn, cell)(i, h, layers, bidirectional=both, batch_first=first, dropout=drop, bias=bias,
                                        **more).cuda().to(DTYPES[dtype])
                if not flat:
                    for p in net.parameters():
                        p.data = p.data.clone()
                net.train(training)
                x = torch.randn((n, t, i) if first else (t, n, i), device="cuda", dtype=DTYPES[dtype],
                                requires_grad=True)
                if packed:
                    lengths = sorted((draw.randint(1, t) for _ in range(n)), reverse=True)
                    name += f" sum={sum(lengths)} longest={lengths[0]}"
                    x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first)
                with Recorder(writer, name, words):
                    y = net(x)[0]
                    y = y.data if packed else y
                    if training:
                        y.float().square().sum().backward()
            elif kind == "bn":
                shape = [draw.choice((2, 4, 8, 16, 32, 64, 128))] + draw.choice(rows)
                if draw.random() < .2:
                    shape = shape[:2] + [4] * draw.choice((0, 1, 3))
                n = 1
                for v in shape:
                    n *= v
                if n > 1 << 28:
                    continue
                last = len(shape) > 3 and draw.random() < .5
                mixed, training = draw.random() < .7, draw.random() < .85
                name = f"bn {text(shape)} {dtype} last={int(last)} mixed={int(mixed)} train={int(training)}"
                net = (nn.BatchNorm1d if len(shape) < 4 else nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm3d)(
                    shape[1]).cuda().train(training)
                if not mixed:
                    net = net.to(DTYPES[dtype])
                x = torch.randn(shape, device="cuda", dtype=DTYPES[dtype])
                if last:
                    x = x.contiguous(memory_format=torch.channels_last if len(shape) == 4 else
                                     torch.channels_last_3d)
                x.requires_grad_()
                with Recorder(writer, name, words):
                    net(x).sum().backward()
            else:
                t, n, a = draw.choice((50, 100, 200)), draw.choice((2, 8, 16)), draw.choice((20, 32, 1000))
                on_card = draw.random() < .5
                device = "cuda" if on_card else "cpu"
                most = draw.choice((10, 30, 50))
                lengths = torch.randint(1, most + 1, (n,), dtype=torch.int32)
                flat = draw.random() < .6
                name = f"ctc t={t} n={n} a={a} most={most} sum={int(lengths.sum())} flat={int(flat)} {device}"
                targets = torch.randint(1, a, (int(lengths.sum()),) if flat else (n, most), dtype=torch.int32).to(
                    device)
                x = torch.randn(t, n, a, device="cuda", requires_grad=True)
                with Recorder(writer, name, words):
                    nn.CTCLoss()(x.log_softmax(2), targets, torch.full((n,), t, dtype=torch.int32).to(device),
                                 lengths.to(device)).backward()
        except Exception as error:
            writer.write(name, "error", type(error).__name__, str(error).splitlines()[0][:150])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder")
    options.add_argument("--seed", type=int, default=18)
    options.add_argument("--limit", type=int, default=768 << 20, help="bytes of the tensors of a case that runs")
    options.add_argument("--calls", type=int, default=2, help="calls of each case of default and search")
    options.add_argument("--kinds", default=",".join(["weight"] * 9 + ["point"] * 7 + ["images"] * 3), help="of grid")
    options.add_argument("--most", type=int, default=1, help="plans of each case of grid")
    for part, seconds in (("plans", 30), ("families", 60), ("shares", 0), ("grid", 0), ("sizes", 12), ("default", 60), ("search", 60), ("limited", 12),
                          ("modules", 25)):
        options.add_argument("--" + part, type=float, default=seconds)
    o = options.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    with open(os.path.join(o.folder, "info.txt"), "w") as f:
        p = torch.cuda.get_device_properties(0)
        f.write(f"card\t{p.name}\nbytes\t{p.total_memory}\nsm\t{p.major}.{p.minor}\n"
                f"multiprocessors\t{p.multi_processor_count}\ntorch\t{torch.__version__}\n"
                f"cudnn\t{torch.backends.cudnn.version()}\ncommand\t{' '.join(sys.argv)}\n")
        os.system(f"nvidia-smi --query-gpu=driver_version --format=csv,noheader >> {f.name}.driver")
    torch.zeros(1, device="cuda")
    cudnn = library.load()
    planner = library.Planner(cudnn)
    clusters(o.folder)
    with open(os.path.join(o.folder, "device.json"), "wb") as f:
        f.write(planner.properties())
    case = Case.FIELDS + ("deterministic", "tf32", "backend", "call", "requests", "seconds")

    def part(name, header, work):
        """Each part in a thread of its own: PyTorch keeps the plans of a thread apart."""
        if getattr(o, name) <= 0:
            return
        writer = Writer(o.folder, name + ".tsv", header)

        def guarded():
            try:
                work(writer)
            except Exception as error:
                writer.write("error", type(error).__name__, error)
                print(name, type(error).__name__, error)
        began = time.monotonic()
        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)

    plans = ("operation", "x", "w", "y", "stride", "padding", "dilation", "dtype", "last", "plans", "list", "largest",
             "crc", "seconds")
    part("plans", plans, lambda w: plan_lists(w, planner, o.seed, o.plans))
    part("families", plans, lambda w: plan_families(w, planner, o.families))
    part("grid", plans[:9] + ("tf32", "first"),
         lambda w: plan_grid(w, planner, o.seed, o.grid, o.kinds.split(","), o.most))
    part("shares", plans[:9] + ("tf32", "first"), lambda w: plan_shares(w, planner, o.seed, o.shares))

    def sizes(writer):
        rnn_sizes(writer, cudnn, planner.handle, o.seed, o.sizes / 2)
        norm_sizes(writer, cudnn, planner.handle, o.seed, o.sizes / 4)
        ctc_sizes(writer, cudnn, planner.handle, o.seed, o.sizes / 4)
    part("sizes", ("kind",), sizes)
    part("default", ("op",) + case, lambda w: convolutions(w, o.seed, o.default, False, o.limit, None, o.calls))
    part("search", ("op",) + case, lambda w: convolutions(w, o.seed, o.search, True, o.limit, None, o.calls))
    part("limited", ("op",) + case, lambda w: convolutions(w, o.seed + 7, o.limited, True, o.limit // 4, 0.8))
    part("modules", ("case", "op", "arguments", "requests"), lambda w: modules(w, o.seed, o.modules))


if __name__ == "__main__":
    main()
