"""Cases beyond the sizes of the other families: many indices, more than 2 GiB, decoding."""
import torch
import torch.nn.functional as F
from calls_attention import attend, default
from measure_kernels import Case


def cases():
    out = []
    for n in (100000, 262144, 1000000):
        for rows, kind in ((1000, "i64"), (50257, "i64"), (400000, "i32")):
            idx = "%s[%d]<%d>" % (kind, n, rows)
            out += [Case("embedding_many", lambda w, i: F.embedding(i, w), "f32[%d,8]g" % rows, idx),
                    Case("embedding_freq", lambda w, i: F.embedding(i, w, scale_grad_by_freq=True),
                         "bf16[%d,8]g" % rows, idx),
                    Case("bag_many", lambda w, i, o: F.embedding_bag(i, w, o, mode="sum"),
                         "f32[%d,8]g" % rows, idx, "%s[%d]O<%d>" % (kind, n // 9, n))]
    for spec in ("f32[700000000]", "bf16[1300000000]", "f32[3,250000000]", "f32[250000000,3]",
                 "f32[60000,12000]", "b[2500000000]"):
        for name, fn in (("sum", torch.sum), ("max", torch.max), ("argmax", torch.argmax),
                         ("var", torch.var), ("any", torch.any),
                         ("norm", torch.linalg.vector_norm)):
            if spec[0] == "b" and spec[1] == "[" and name not in ("any", "max"):
                continue
            out.append(Case("big_" + name, lambda a, f=fn: f(a), spec))
            if "," in spec and name in ("sum", "max", "argmax", "var"):
                for dim in (0, 1):
                    out.append(Case("big_%s%d" % (name, dim), lambda a, f=fn, d=dim: f(a, d), spec))
    for b, h, g, t, d in ((1, 32, 8, 1000, 128), (8, 12, 12, 77, 64), (2, 16, 4, 8000, 64),
                          (1, 4, 1, 300, 256), (32, 8, 8, 513, 128), (4, 40, 40, 2050, 128)):
        for s in (1, 2, 5):
            q, k = "bf16[%d,%d,%d,%d]" % (b, h, s, d), "bf16[%d,%d,%d,%d]" % (b, g, t, d)
            for backend in ("flash", "cudnn"):
                if d <= 128 or backend == "flash":
                    out.append(Case("decode_" + backend, attend(backend, enable_gqa=h != g), q, k,
                                    k))
            if h == g:
                out.append(Case("decode", default, q, k, k, "b[%d,1,%d,%d]" % (b, s, t)))
                out.append(Case("decode_efficient", attend("efficient"), q, k, k))
    for n in (4999, 20000, 150000):
        out.append(Case("topk_many", lambda a, k=n: torch.topk(a, k), "f32[3,200000]"))
        out.append(Case("topk_many", lambda a, k=n: torch.topk(a, k), "f32[200,%d]" % (n + 10)))
    for dtype in ("f16", "f64", "i16", "i8"):
        g = "" if dtype[0] == "i" else ""
        for n in (3000, 5000, 200000):
            x = "%s[%d]%s" % (dtype, n, g)
            out += [Case("sort", torch.sort, x), Case("unique", torch.unique, x),
                    Case("cumsum", lambda a: torch.cumsum(a, 0), x),
                    Case("topk", lambda a: torch.topk(a, 100), x),
                    Case("sort_rows", torch.sort, x.replace("[", "[3,"))]
    for n in (5000, 6000, 8192, 12000, 20000, 30000, 48000, 65536):
        for b in (1, 7):
            out += [Case("rfft", torch.fft.rfft, "f32[%d,%d]" % (b, n)),
                    Case("irfft", torch.fft.irfft, "c64[%d,%d]" % (b, n // 2 + 1)),
                    Case("fft", torch.fft.fft, "c64[%d,%d]" % (b, n))]
    for n in (2048, 2560, 3000, 4000, 4096):
        out += [Case("rfft", torch.fft.rfft, "f32[5,%d]" % n),
                Case("irfft", torch.fft.irfft, "c64[5,%d]" % (n // 2 + 1))]
    x = "f32[1000,64]"
    out += [Case("floor_divide", torch.floor_divide, x, "f32[64]"),
            Case("floor_divide", lambda a: a // 3, "i64[1000]"),
            Case("remainder", lambda a: a % 3, "i64[1000]"),
            Case("two_masks", lambda a, m, k: a[m, k], x, "b[1000]", "i64[1]<64>"),
            Case("mask_rows_set", set_rows, x, "b[1000]", "f32[64]"),
            Case("mask_set_tensor", set_rows, x, "b[1000,64]", "f32[]"),
            Case("index_pairs", lambda a, i, j: a[i[:, None], j], x, "i64[10]<1000>", "i64[5]<64>"),
            Case("put_pairs", put_pairs, x, "i64[10]<1000>", "i64[5]<64>", "f32[10,5]"),
            Case("put_rows_value", put_rows_value, x, "i64[300]<1000>", "f32[64]"),
            Case("index_middle_g", lambda a, i: a[:, i], "f32[8,100,16]g", "i64[40]<100>"),
            Case("index_last_g", lambda a, i: a[..., i], "f32[8,100,16]g", "i64[40]<16>"),
            Case("pack", lambda a: torch.nn.utils.rnn.pack_padded_sequence(
                a, torch.tensor([10, 7, 3]), batch_first=True).data, "f32[3,10,8]g"),
            Case("transformer_mha", lambda a: F.multi_head_attention_forward(
                a, a, a, 64, 4, a.new_ones(192, 64), a.new_ones(192), None, None, False, 0.0,
                a.new_ones(64, 64), a.new_ones(64))[0], "f32[20,4,64]"),
            Case("einsum3", lambda a, b, c: torch.einsum("bi,ij,bj->b", a, b, c), "f32[64,32]g",
                 "f32[32,16]g", "f32[64,16]g"),
            Case("logsumexp_all", lambda a: torch.logsumexp(a, (0, 1)), "f32[3000,400]g"),
            Case("softplus", F.softplus, "bf16[3000,400]g"), Case("erfinv", torch.erfinv, x),
            Case("lgamma", torch.lgamma, x), Case("cummin", lambda a: torch.cummin(a, 0)[0],
                                                  "f32[1000]g"),
            Case("scatter_reduce_g", lambda a, i, v: a.scatter_reduce(0, i, v, "amin"), x + "g",
                 "i64[300,64]<1000>", "f32[300,64]g"),
            Case("segment", lambda v, n: torch.segment_reduce(v, "sum", lengths=n), "f32[1000,8]",
                 "i64[1]N<2>"),
            Case("lerp", lambda a, b: torch.lerp(a, b, 0.3), x, x),
            Case("bce_weight", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, w,
                                                                                 pos_weight=w),
                 x + "g", "f32[1000,64]", "f32[64]N"),
            Case("mse_none", lambda a, b: F.mse_loss(a, b, reduction="none"), x + "g", x),
            Case("mse_sum", lambda a, b: F.mse_loss(a, b, reduction="sum"), x + "g", x)]
    return out


def set_rows(a, m, v):
    a = a.clone()
    a[m] = v
    return a


def put_pairs(a, i, j, v):
    return a.index_put_((i[:, None], j), v, accumulate=True)


def put_rows_value(a, i, v):
    return a.index_put_((i,), v, accumulate=True)
