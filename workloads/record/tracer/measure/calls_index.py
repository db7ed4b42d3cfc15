"""Cases of indexing, scattering, embeddings, sorting, unique and sampling."""
import torch
import torch.nn.functional as F
from measure_kernels import Case


def embeddings():
    out = []
    for dtype in ("f32", "bf16"):
        for rows in (10, 1000, 50257, 300000):
            for count in ((7,), (768,), (3072,), (3073,), (8, 1024), (16, 4096)):
                for width in (16, 100, 768):
                    idx = "i64[%s]<%d>" % (",".join(map(str, count)), rows)
                    out.append(Case("embedding", lambda w, i: F.embedding(i, w),
                                    "%s[%d,%d]g" % (dtype, rows, width), idx))
        for kw in ({"padding_idx": 3}, {"scale_grad_by_freq": True}, {"sparse": True},
                   {"padding_idx": 0, "scale_grad_by_freq": True}):
            for count in (100, 3073, 20000):
                for kind in ("i64", "i32"):
                    out.append(Case("embedding_%s" % "_".join(kw), lambda w, i, k=kw: F.embedding(
                        i, w, **k), dtype + "[1000,64]g", "%s[%d]<1000>" % (kind, count)))
    out.append(Case("embedding_renorm", lambda w, i: F.embedding(i, w, max_norm=1.0),
                    "f32[1000,64]", "i64[500]<1000>"))
    for mode in ("sum", "mean", "max"):
        for rows, width, count, bags in ((1000, 64, 500, 50), (100000, 128, 30000, 4096),
                                         (50, 17, 5000, 128), (1000000, 16, 65536, 2048),
                                         (300, 64, 128, 128)):
            for kind in ("i64", "i32"):
                specs = ("f32[%d,%d]g" % (rows, width), "%s[%d]<%d>" % (kind, count, rows),
                         "%s[%d]O<%d>" % (kind, bags, count))
                out.append(Case("bag_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                    i, w, o, mode=m), *specs))
            specs = ("f32[%d,%d]g" % (rows, width), "i64[%d]<%d>" % (count, rows),
                     "i64[%d]O<%d>" % (bags, count))
            out.append(Case("bag_last_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                i, w, o, mode=m, include_last_offset=True), *specs))
            out.append(Case("bag_padding_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                i, w, o, mode=m, padding_idx=2), *specs))
            out.append(Case("bag_half_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                i, w, o, mode=m), specs[0].replace("f32", "bf16"), *specs[1:]))
            if mode != "max":
                out.append(Case("bag_sparse_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                    i, w, o, mode=m, sparse=True), *specs))
                out.append(Case("bag_freq_" + mode, lambda w, i, o, m=mode: F.embedding_bag(
                    i, w, o, mode=m, scale_grad_by_freq=True), *specs))
            if mode == "sum":
                out.append(Case("bag_weights", lambda w, i, o, s: F.embedding_bag(
                    i, w, o, mode="sum", per_sample_weights=s), *specs, "f32[%d]g" % count))
        out.append(Case("bag2_" + mode, lambda w, i, m=mode: F.embedding_bag(i, w, mode=m),
                        "f32[5000,32]g", "i64[256,20]<5000>"))
    return out


def indexing():
    out = []
    for dtype in ("f32", "bf16", "i64"):
        g = "" if dtype == "i64" else "g"
        for rows, width, count in ((1000, 64, 100), (50000, 128, 20000), (300, 7, 3000),
                                   (100, 1, 1000000), (4096, 1024, 8192)):
            x, i = "%s[%d,%d]" % (dtype, rows, width), "i64[%d]<%d>" % (count, rows)
            v, full = "%s[%d,%d]" % (dtype, count, width), "i64[%d,%d]<%d>" % (count, width, rows)
            out += [
                Case("index_select", lambda a, b: a.index_select(0, b), x + g, i),
                Case("index", lambda a, b: a[b], x + g, i),
                Case("index_2", lambda a, b: a[b, b % a.shape[1]], x + g, i),
                Case("index_middle", lambda a, b: a.unsqueeze(0)[:, b], x + g, i),
                Case("put", lambda a, b, c: a.index_put((b,), c), x, i, v),
                Case("put_add", lambda a, b, c: a.index_put((b,), c, accumulate=True), x + g, i,
                     v + g),
                Case("put_add_", lambda a, b, c: a.index_put_((b,), c, accumulate=True), x, i, v),
                Case("put_add_scalar", lambda a, b, c: a.index_put_((b,), c, accumulate=True), x, i,
                     dtype + "[]"),
                Case("put_add_2", lambda a, b, c: a.index_put_((b, b % a.shape[1]), c,
                                                               accumulate=True), x, i,
                     "%s[%d]" % (dtype, count)),
                Case("put_add_column", lambda a, b, c: torch.ops.aten.index_put_(
                    a, [None, b % a.shape[1]], c, True), x, i,
                     "%s[%d,%d]" % (dtype, rows, count)) if rows * count < 2e8 else None,
                Case("index_add", lambda a, b, c: a.index_add(0, b, c), x + g, i, v + g),
                Case("index_add_1", lambda a, b, c: a.t().contiguous().index_add(1, b, c.t()), x, i,
                     v),
                Case("index_add_alpha", lambda a, b, c: a.index_add_(0, b, c, alpha=2), x, i, v),
                Case("index_copy", lambda a, b, c: a.index_copy(0, b, c), x + g, i, v + g),
                Case("index_fill", lambda a, b: a.index_fill(0, b, 1), x + g, i),
                Case("gather", lambda a, b: a.gather(0, b), x + g, full),
                Case("scatter", lambda a, b, c: a.scatter(0, b, c), x + g, full, v + g),
                Case("scatter_value", lambda a, b: a.scatter(0, b, 1), x, full),
                Case("scatter_add", lambda a, b, c: a.scatter_add(0, b, c), x + g, full, v + g),
                Case("scatter_add_rows", lambda a, b, c: a.scatter_add(
                    0, b.unsqueeze(1).expand(c.shape), c), x + g, i, v + g),
                Case("gather_rows", lambda a, b: a.gather(0, b.unsqueeze(1).expand(-1, a.shape[1])),
                     x + g, i),
                Case("scatter_mean", lambda a, b, c: a.scatter_reduce(0, b, c, "mean"), x + g, full,
                     v + g),
                Case("scatter_amax", lambda a, b, c: a.scatter_reduce(0, b, c, "amax"), x + g, full,
                     v + g),
                Case("scatter_prod", lambda a, b, c: a.scatter_reduce(0, b, c, "prod"), x, full, v),
                Case("index_reduce", lambda a, b, c: a.index_reduce(0, b, c, "mean"), x, i, v),
                Case("take", lambda a, b: a.take(b), x + g, i),
                Case("put_", lambda a, b, c: a.put_(b, c, accumulate=True), x, i,
                     "%s[%d]" % (dtype, count)),
                Case("put_bool", lambda a, m: a.masked_fill(m, 0), x + g,
                     "b[%d,%d]" % (rows, width)),
                Case("bool_index", lambda a, m: a[m], x + g, "b[%d,%d]" % (rows, width)),
                Case("bool_index_rows", lambda a, m: a[m], x + g, "b[%d]" % rows),
                Case("bool_put_value", put_value, x, "b[%d,%d]" % (rows, width)),
                Case("bool_put", put_mask, x, "b[%d,%d]" % (rows, width)),
                Case("masked_select", torch.masked_select, x + g, "b[%d,%d]" % (rows, width)),
                Case("masked_select_rows", torch.masked_select, x + g, "b[%d,1]" % rows),
                Case("masked_scatter", lambda a, m, c: a.masked_scatter(m, c), x + g,
                     "b[%d,%d]" % (rows, width), "%s[%d,%d]" % (dtype, rows, width) + g),
                Case("nonzero", torch.nonzero, x),
                Case("nonzero_tuple", lambda a: torch.nonzero(a, as_tuple=True), x),
                Case("nonzero_static", lambda a: torch.nonzero_static(a, size=100), x),
                Case("where1", lambda a: torch.where(a > 0), x),
                Case("argwhere", torch.argwhere, "b[%d,%d]" % (rows, width)),
            ]
            if g:
                out.append(Case("det_index_add", deterministic(lambda a, b, c: a.index_add(0, b, c)),
                                x + g, i, v + g))
                out.append(Case("det_scatter_add", deterministic(
                    lambda a, b, c: a[:, 0].scatter_add(0, b, c[:, 0])), x, i, v))
                out.append(Case("det_put", deterministic(lambda a, b, c: a.index_put((b,), c)), x, i,
                                v))
                out.append(Case("det_gather", deterministic(lambda a, b: a.gather(0, b)), x + g,
                                full))
                out.append(Case("det_cumsum", deterministic(lambda a: a.cumsum(0)), x))
    out += [Case("searchsorted", torch.searchsorted, "f32[1000]O<1000>", "f32[500]"),
            Case("bucketize", lambda a, b: torch.bucketize(b, a), "f32[1000]O<1000>", "f32[50000]"),
            Case("one_hot", lambda a: F.one_hot(a, 100), "i64[1000]<100>"),
            Case("one_hot", F.one_hot, "i64[1000]<100>"),
            Case("isin", torch.isin, "i64[10000]<100>", "i64[50]<100>"),
            Case("isin", torch.isin, "i64[10000]<100>", "i64[5000]<10000>"),
            Case("repeat_interleave", lambda a: torch.repeat_interleave(a, 3, 0), "f32[100,64]g"),
            Case("repeat_interleave", lambda a, b: torch.repeat_interleave(a, b, 0), "f32[100,64]g",
                 "i64[100]<10>"),
            Case("repeat_interleave1", torch.repeat_interleave, "i64[20000]<10>"),
            Case("repeat_interleave_sized", lambda a, b: torch.repeat_interleave(
                a, b, 0, output_size=int(b.sum())), "f32[100,64]g", "i64[100]<10>")]
    return [c for c in out if c]


def put_value(a, m):
    a[m] = 0
    return a


def put_mask(a, m):
    a[m] = a[m]
    return a


def deterministic(fn):
    def call(*args):
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            return fn(*args)
        finally:
            torch.use_deterministic_algorithms(False)
    return call


def sorting():
    out = []
    shapes = ("[10]", "[1000]", "[1024]", "[2049]", "[4097]", "[100000]", "[3000000]", "[4,100]",
              "[64,1000]", "[64,4096]", "[300,5000]", "[2,100000]", "[5000,33]", "[3,100,77]",
              "[8,50257]", "[128,50257]", "[16,2048,64]", "[0]", "[1]", "[]")
    for dtype in ("f32", "bf16", "i64", "i32", "u8", "b"):
        for shape in shapes:
            x = dtype + shape + ("<50>" if dtype == "u8" else "<100000>" if dtype[0] == "i" else "")
            g = "g" if dtype == "f32" and shape not in ("[0]", "[]") else ""
            g = x.replace("]", "]" + g)
            out.append(Case("sort", torch.sort, g))
            if dtype != "b":
                out.append(Case("argsort_stable", lambda a: torch.argsort(
                    a, stable=True, descending=True), x))
            many = shape.count(",") and not shape.startswith("[5000")
            if many and dtype in ("f32", "i64", "bf16"):
                out.append(Case("sort0", lambda a: torch.sort(a, 0), x))
            size = shape[1:-1].split(",")[-1]
            for k in (1, 8, 50, 1000):
                if size and int(size) >= k and dtype not in ("b",):
                    out.append(Case("topk", lambda a, n=k: torch.topk(a, n), g))
                    if k == 8:
                        out.append(Case("topk_any", lambda a, n=k: torch.topk(
                            a, n, sorted=False), x))
            if dtype != "b" and shape not in ("[0]",) and dtype in ("f32", "bf16", "i64"):
                out.append(Case("median", torch.median, x))
                if shape != "[]":
                    out.append(Case("median1", lambda a: torch.median(a, -1), g))
                    out.append(Case("nanmedian1", lambda a: torch.nanmedian(a, -1), x))
                    out.append(Case("kthvalue", lambda a: torch.kthvalue(a, 1), g))
                    out.append(Case("mode", torch.mode, x))
            if "," not in shape and dtype in ("f32", "i64", "i32", "bf16", "b", "u8"):
                out.append(Case("unique", torch.unique, x))
                out.append(Case("unique_all", lambda a: torch.unique(
                    a, return_inverse=True, return_counts=True), x))
                out.append(Case("unique_inverse", lambda a: torch.unique(a, return_inverse=True), x))
                out.append(Case("unique_counts", lambda a: torch.unique(a, return_counts=True), x))
                out.append(Case("consecutive", lambda a: torch.unique_consecutive(
                    a, return_inverse=True, return_counts=True), x))
                out.append(Case("consecutive1", torch.unique_consecutive, x))
            if shape in ("[4,100]", "[64,1000]", "[5000,33]") and dtype in ("f32", "i64"):
                out.append(Case("unique_dim", lambda a: torch.unique(
                    a, dim=0, return_inverse=True, return_counts=True), x))
                out.append(Case("consecutive_dim", lambda a: torch.unique_consecutive(a, dim=0), x))
            if dtype in ("f32", "bf16", "i64", "b"):
                out.append(Case("cumsum", lambda a: torch.cumsum(a, -1), g))
                out.append(Case("cumprod", lambda a: torch.cumprod(a, -1), x))
                if many:
                    out.append(Case("cumsum0", lambda a: torch.cumsum(a, 0), g))
            if dtype in ("f32", "bf16"):
                out.append(Case("logcumsumexp", lambda a: torch.logcumsumexp(a, -1), g))
            if dtype in ("f32", "i64") and shape != "[0]":
                out.append(Case("cummax", lambda a: torch.cummax(a, -1), x))
    out += [Case("sort_S", torch.sort, "f32[64,1000]S"), Case("sort_T", torch.sort, "f32[1000,64]T"),
            Case("sort_big", lambda a: torch.sort(a, 0), "f32[50000,64]"),
            Case("lexsort", lambda a: torch.sort(a, stable=True), "i64[70000]<50>")]
    for bins in (10, 100, 1000, 10000):
        for n in (10, 1000, 1000000):
            out.append(Case("histc", lambda a, b=bins: torch.histc(a, b, -3, 3), "f32[%d]" % n))
            out.append(Case("histc", lambda a, b=bins: torch.histc(a, b), "f32[%d]" % n))
            out.append(Case("histc_int", lambda a, b=bins: torch.histc(a, b, 0, b - 1),
                            "i64[%d]<%d>" % (n, bins)))
            out.append(Case("bincount", lambda a: torch.bincount(a), "i64[%d]<%d>" % (n, bins)))
            out.append(Case("bincount_min", lambda a, b=bins: torch.bincount(a, minlength=b),
                            "i32[%d]<%d>" % (n, bins)))
            out.append(Case("bincount_w", torch.bincount, "i64[%d]<%d>" % (n, bins), "f32[%d]" % n))
    for rows, n in ((1, 100), (4, 1000), (16, 50257), (256, 33)):
        for dtype in ("f32", "bf16"):
            x = "%s[%d,%d]N" % (dtype, rows, n)
            out.append(Case("multinomial", lambda a: torch.multinomial(a, 1), x))
            out.append(Case("multinomial", lambda a: torch.multinomial(a, 5), x))
            out.append(Case("multinomial_r", lambda a: torch.multinomial(a, 5, replacement=True), x))
    for n in (1, 100, 1000, 29999, 30001, 1000000):
        for dtype in (torch.int64, torch.int32):
            out.append(Case("randperm%d" % n, lambda a, k=n, d=dtype: torch.randperm(
                k, device=a.device, dtype=d), "f32[1]"))
    return out


def cases():
    return embeddings() + indexing() + sorting()
