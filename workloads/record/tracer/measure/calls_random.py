"""Shapes drawn at random, for the operators whose own memory depends on the shape.

The rows of seed 18 were at hand when the rules were written; those of seed 19 were not.
"""
import random

import torch
import torch.nn.functional as F
from calls_attention import attend, default, transposed
from measure_kernels import Case


def size(draw, low, high):
    """A size between low and high, by its logarithm; sometimes a round one."""
    value = int(low * (high / low) ** draw.random())
    if draw.random() < 0.5:
        unit = 1 << max(0, value.bit_length() - 3)
        value = max(low, value // unit * unit)
    return value


def reductions(draw):
    fns = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "var": torch.var,
           "norm": lambda a, d: torch.linalg.vector_norm(a, 2, d), "any": torch.any,
           "logsumexp": torch.logsumexp, "std": torch.std, "var_mean": torch.var_mean,
           "count_nonzero": torch.count_nonzero}
    one = {"max": torch.max, "argmax": torch.argmax, "prod": torch.prod, "min": torch.min}
    out = []
    for _ in range(700):
        dims = draw.choice((1, 2, 2, 3, 3, 4))
        shape, left = [], 4e7
        for _ in range(dims):
            shape.append(size(draw, 1, max(2, int(min(left, 3e5 if dims > 1 else 3e7)))))
            left /= shape[-1]
        dtype = draw.choice(("f32", "f32", "bf16", "f16", "f64", "i64"))
        spec = "%s[%s]" % (dtype, ",".join(map(str, shape)))
        if dims > 1 and draw.random() < 0.15:
            spec += draw.choice("TS")
        if draw.random() < 0.7 or dtype == "i64" and draw.random() < 0.5:
            name = draw.choice(("sum", "any", "count_nonzero", "amax") if dtype == "i64"
                               else list(fns))
            which = tuple(sorted(draw.sample(range(dims), draw.randint(1, dims))))
            out.append(Case("%s%s" % (name, which), lambda a, f=fns[name], d=which: f(a, d), spec))
        else:
            name = draw.choice(list(one))
            which = draw.randrange(dims)
            out.append(Case("%s%d" % (name, which), lambda a, f=one[name], d=which: f(a, d), spec))
    return out


def rows(draw):
    out = []
    for _ in range(150):
        m, n = size(draw, 1, 60000), size(draw, 4, 20000)
        if m * n > 1e8:
            continue
        dtype = draw.choice(("f32", "bf16", "f16"))
        x, w = "%s[%d,%d]g" % (dtype, m, n), "%s[%d]g" % (dtype, n)
        out += [Case("layer_norm", lambda a, b, c: F.layer_norm(a, b.shape, b, c), x, w, w),
                Case("rms_norm", lambda a, b: F.rms_norm(a, b.shape, b), x, w),
                Case("softmax", lambda a: F.softmax(a, -1), x),
                Case("softmax_T", lambda a: F.softmax(a, -1), x.replace("]", "]T")),
                Case("cross_entropy", F.cross_entropy, x, "i64[%d]<%d>" % (m, n)),
                Case("linear", F.linear, x, "%s[%d,%d]g" % (dtype, size(draw, 1, 4000), n))]
    for _ in range(40):
        b, g, c, s = size(draw, 1, 64), size(draw, 1, 32), size(draw, 1, 32), size(draw, 2, 64)
        dtype = draw.choice(("f32", "bf16"))
        w = "%s[%d]g" % (dtype, g * c)
        out.append(Case("group_norm", lambda a, x, y, k=g: F.group_norm(a, k, x, y),
                        "%s[%d,%d,%d,%d]g" % (dtype, b, g * c, s, s), w, w))
    return out


def attention(draw):
    out = []
    for _ in range(90):
        b, h = size(draw, 1, 16), size(draw, 1, 32)
        s = size(draw, 1, 4000)
        t = s if draw.random() < 0.6 else size(draw, 1, 4000)
        d = draw.choice((8, 16, 24, 32, 40, 48, 64, 64, 64, 72, 80, 96, 128, 128, 160, 256))
        if b * h * s * t > 3e8 or b * h * max(s, t) * d > 1e8:
            continue
        dtype = draw.choice(("bf16", "bf16", "f16", "f32"))
        g = draw.choice(("g", "g", ""))
        backend = draw.choice(("flash", "efficient", "efficient", "cudnn", "default"))
        if dtype == "f32" and backend in ("flash", "cudnn"):
            backend = "efficient"
        swap = draw.random() < 0.5
        shapes = [(b, n, h, d) if swap else (b, h, n, d) for n in (s, t, t)]
        specs = ["%s[%d,%d,%d,%d]%s" % ((dtype,) + shape + (g,)) for shape in shapes]
        mask = draw.random() < 0.3 and backend != "flash"
        fn = default if backend == "default" else attend(
            backend, is_causal=not mask and draw.random() < 0.3)
        if mask:
            specs.append("%s[%d,1,%d,%d]" % (dtype, b, s, t))
        out.append(Case(backend, transposed(fn) if swap else fn, *specs))
    return out


def indexing(draw):
    out = []
    for _ in range(120):
        r, w, n = size(draw, 2, 200000), size(draw, 1, 1500), size(draw, 1, 60000)
        if r * w > 1e8 or n * w > 1e8:
            continue
        dtype = draw.choice(("f32", "bf16"))
        x, i, v = ("%s[%d,%d]" % (dtype, r, w), "i64[%d]<%d>" % (n, r),
                   "%s[%d,%d]" % (dtype, n, w))
        out += [Case("embedding", lambda a, b: F.embedding(b, a), x + "g", i),
                Case("index", lambda a, b: a[b], x + "g", i),
                Case("put_add", lambda a, b, c: a.index_put_((b,), c, accumulate=True), x, i, v),
                Case("index_add", lambda a, b, c: a.index_add(0, b, c), x, i, v),
                Case("nonzero", torch.nonzero, "b[%d,%d]" % (r, w)),
                Case("bool_index", lambda a, m: a[m], x + "g", "b[%d]" % r),
                Case("masked_select", torch.masked_select, x + "g", "b[%d,%d]" % (r, w)),
                Case("bag", lambda a, b, o, m=draw.choice(("sum", "mean")): F.embedding_bag(
                    b, a, o, mode=m), x + "g", i, "i64[%d]O<%d>" % (max(1, n // 7), n))]
    return out


def sorting(draw):
    out = []
    for _ in range(160):
        r, n = size(draw, 1, 3000), size(draw, 1, 2000000)
        if r * n > 2e7:
            continue
        dtype = draw.choice(("f32", "f32", "bf16", "i64", "i32"))
        x = "%s[%d,%d]" % (dtype, r, n) + ("<%d>" % size(draw, 2, 100000) if dtype[0] == "i" else "")
        flat = x.replace("[%d,%d]" % (r, n), "[%d]" % n)
        k = min(n, size(draw, 1, 2000))
        out += [Case("sort", torch.sort, x), Case("sort0", lambda a: torch.sort(a, 0), x),
                Case("sort1", torch.sort, flat),
                Case("argsort", lambda a: torch.argsort(a, stable=True), flat),
                Case("topk", lambda a, k=k: torch.topk(a, k), x),
                Case("cumsum", lambda a: torch.cumsum(a, -1), flat),
                Case("cumsum_2", lambda a, d=draw.randrange(2): torch.cumsum(a, d), x),
                Case("unique", lambda a: torch.unique(a, return_inverse=True, return_counts=True),
                     flat),
                Case("unique_2", torch.unique, x),
                Case("consecutive", lambda a: torch.unique_consecutive(a, return_counts=True), flat),
                Case("kthvalue", lambda a: torch.kthvalue(a, 1), x),
                Case("median", torch.median, flat)]
        if dtype[0] == "f":
            out.append(Case("randperm", lambda a, k=n: torch.randperm(k, device=a.device), "f32[1]"))
            out.append(Case("multinomial", lambda a: torch.multinomial(a.abs(), 1), flat)
                       if n < 16000000 else None)
        else:
            out.append(Case("bincount", torch.bincount, flat) if dtype[0] == "i" else None)
    return [c for c in out if c]


def transforms(draw):
    out = []
    for _ in range(60):
        n = size(draw, 2, 300000)
        b = size(draw, 1, max(2, 3000000 // n))
        for fn in (torch.fft.rfft, torch.fft.fft):
            out.append(Case(fn.__name__, fn, "f32[%d,%d]g" % (b, n)))
        out.append(Case("irfft", torch.fft.irfft, "c64[%d,%d]" % (b, n)))
        k = size(draw, 1, 600)
        for name in ("qr", "inv", "eigh", "svd", "det"):
            out.append(Case(name, getattr(torch.linalg, name), "f32[%d,%d]P" % (k, k)))
            if draw.random() < 0.3:
                out.append(Case(name, getattr(torch.linalg, name),
                                "f32[%d,%d,%d]P" % (size(draw, 2, 10), k, k)))
    return out


def cases(seed=18):
    draw = random.Random(seed)
    return (reductions(draw) + rows(draw) + attention(draw) + indexing(draw) + sorting(draw)
            + transforms(draw))
