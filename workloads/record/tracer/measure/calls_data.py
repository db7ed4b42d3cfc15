"""Cases of joining, copying, conversion, creation and small helpers."""
import torch
import torch.nn.functional as F
from measure_kernels import Case


def on(fn):
    return lambda a: fn(a.device)


def cases():
    out = []
    for dtype in ("f32", "bf16", "i64", "b"):
        for count in (1, 2, 3, 16, 100, 500):
            for shape in ("[33,40]", "[1,64]", "[2,8,16,5]"):
                specs = [dtype + shape] * count
                out.append(Case("cat0 %d" % count, lambda *a: torch.cat(a, 0), *specs))
                out.append(Case("cat1 %d" % count, lambda *a: torch.cat(a, -1), *specs))
                out.append(Case("stack %d" % count, lambda *a: torch.stack(a, 1), *specs))
        out += [Case("cat_mixed", lambda a, b: torch.cat([a, b.t()], 0), dtype + "[64,64]",
                     dtype + "[64,64]"),
                Case("cat_S", lambda a, b: torch.cat([a, b], 0), dtype + "[64,64]S",
                     dtype + "[64,64]"),
                Case("cat_empty", lambda a, b: torch.cat([a, b[:0]], 0), dtype + "[64,64]",
                     dtype + "[64,64]"),
                Case("cat_L", lambda a, b: torch.cat([a, b], 1), dtype + "[4,8,16,16]L",
                     dtype + "[4,8,16,16]L"),
                Case("cat_6", lambda a: torch.cat([a, a], 1), dtype + "[2,2,2,2,2,3]")]
        x = dtype + "[300,200]"
        for to in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64):
            out.append(Case("to %s" % to, lambda a, d=to: a.to(d), x))
            out.append(Case("to_t %s" % to, lambda a, d=to: a.t().to(d), x))
            out.append(Case("copy_ %s" % to, lambda a, d=to: torch.empty(
                200, 300, dtype=d, device=a.device).t().copy_(a), x))
        out += [Case("contiguous", lambda a: a.t().contiguous(), x), Case("clone", torch.clone, x),
                Case("clone_S", torch.clone, x + "S"), Case("flip", lambda a: a.flip(0), x),
                Case("roll", lambda a: a.roll(3, 0), x), Case("roll2", lambda a: a.roll(
                    (3, 2), (0, 1)), x),
                Case("tril", torch.tril, x), Case("triu", torch.triu, x),
                Case("tril_", lambda a: a.tril_(), x), Case("diag", torch.diag, dtype + "[100]"),
                Case("tril_T", torch.tril, x + "T"),
                Case("diagonal", torch.diagonal, x), Case("rot90", torch.rot90, x),
                Case("repeat", lambda a: a.repeat(2, 3), x),
                Case("expand", lambda a: a[:1].expand(50, 200).contiguous(), x),
                Case("to_cpu", lambda a: a.cpu(), x), Case("to_cpu_T", lambda a: a.t().cpu(), x),
                Case("to_cpu_S", lambda a: a[:, ::2].cpu(), x),
                Case("item", lambda a: a[0, 0].item(), x), Case("tolist", lambda a: a.tolist(), x),
                Case("where", lambda a: torch.where(a > 0, a, a), x),
                Case("where_s", lambda a: torch.where(a > 0, a, 0), x),
                Case("fill", lambda a: a.fill_(1), x), Case("zero", lambda a: a.zero_(), x),
                Case("eq", torch.eq, x, x), Case("equal", torch.equal, x, x)]
        if dtype != "b":
            out += [Case("add", torch.add, x, x), Case("add_s", lambda a: a + 2, x),
                    Case("mul_b", lambda a: a * a[:1], x), Case("add_mix", torch.add, x, "f32[200]"),
                    Case("pow", lambda a: a ** 2, x), Case("clamp", lambda a: a.clamp(0, 1), x),
                    Case("add_T", lambda a: a + a.clone().t().contiguous().t(), x),
                    Case("maximum", torch.maximum, x, x), Case("diff", torch.diff, x),
                    Case("cross", torch.linalg.cross, dtype + "[100,3]", dtype + "[100,3]"),
                    Case("trapz", torch.trapezoid, x), Case("kron", torch.kron, dtype + "[8,9]",
                                                            dtype + "[5,6]"),
                    Case("addcmul", torch.addcmul, x, x, x), Case("iadd_mix", iadd, x, "i32[200]")]
    for spec in ("f32[300,200]", "bf16[300,200]", "f32[300,200]T", "f32[300,200]S"):
        for flag in "HC":
            for block in (True, False):
                out.append(Case("h2d %s" % block, lambda a, b=block: a.to("cuda", non_blocking=b),
                                spec + flag))
                out.append(Case("h2d_dtype %s" % block, lambda a, b=block: a.to(
                    "cuda", torch.float16, non_blocking=b), spec + flag))
                out.append(Case("h2d_copy %s" % block, lambda a, b=block: torch.empty(
                    200, 300, device="cuda").t().copy_(a, non_blocking=b), spec + flag))
        out.append(Case("d2h_pinned", lambda a: torch.empty(a.shape, dtype=a.dtype, pin_memory=True
                                                            ).copy_(a, non_blocking=True), spec))
        out.append(Case("d2h_async", lambda a: a.to("cpu", non_blocking=True), spec))
        out.append(Case("pin", lambda a: a.pin_memory(), spec + "C"))
    one = "f32[1]"
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        f = dtype.is_floating_point
        for n in (1, 1000, 1000003):
            kw = {"dtype": dtype}
            out += [Case("arange %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.arange(
                        k, device=d, **w)), one),
                    Case("full %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.full(
                        (k,), 3, device=d, **w)), one),
                    Case("randint %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.randint(
                        0, 9, (k,), device=d, **w)), one)]
            if f:
                out += [Case("randn %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.randn(
                            k, device=d, **w)), one),
                        Case("rand %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.rand(
                            k, device=d, **w)), one),
                        Case("linspace %s %d" % (dtype, n), on(lambda d, k=n, w=kw: torch.linspace(
                            0, 1, k, device=d, **w)), one)]
    out += [Case("eye", on(lambda d: torch.eye(100, device=d)), one),
            Case("tril_indices", on(lambda d: torch.tril_indices(100, 100, device=d)), one),
            Case("tensor", on(lambda d: torch.tensor([1.0, 2.0, 3.0], device=d)), one),
            Case("meshgrid", lambda a: torch.meshgrid(a, a, indexing="ij")[0].contiguous(),
                 "f32[100]"),
            Case("combinations", torch.combinations, "f32[100]"),
            Case("cartesian", lambda a: torch.cartesian_prod(a, a), "f32[100]"),
            Case("bernoulli", lambda a: torch.bernoulli(a.clamp(0, 1)), "f32[100,50]N"),
            Case("bernoulli_p", lambda a: torch.bernoulli(a, 0.5), "f32[100,50]"),
            Case("normal_", lambda a: a.normal_(), "f32[100,50]"),
            Case("normal_t", lambda a: torch.normal(a, a.abs()), "f32[100,50]"),
            Case("uniform_", lambda a: a.uniform_(), "f32[100,50]S"),
            Case("exponential_", lambda a: a.exponential_(), "bf16[100,50]"),
            Case("trunc_normal", lambda a: torch.nn.init.trunc_normal_(a), "f32[100,50]"),
            Case("orthogonal", lambda a: torch.nn.init.orthogonal_(a), "f32[100,50]"),
            Case("poisson", torch.poisson, "f32[100,50]N"),
            Case("gamma", torch._standard_gamma, "f32[100,50]N"),
            Case("renorm", lambda a: a.renorm(2, 0, 1.0), "f32[100,50]"),
            Case("polar", torch.polar, "f32[100,32]", "f32[100,32]"),
            Case("view_complex", lambda a: torch.view_as_real(torch.view_as_complex(
                a.reshape(100, 16, 2)) * 2), "f32[100,32]g"),
            Case("complex_mul", lambda a, b: a * b, "c64[100,32]g", "c64[100,32]"),
            Case("rope", rope, "bf16[2,8,100,64]g", "f32[100,64]"),
            Case("quantize", lambda a: torch.quantize_per_tensor(a, 0.1, 0, torch.qint8),
                 "f32[100,50]"),
            Case("fake_quantize", lambda a: torch.fake_quantize_per_tensor_affine(
                a, 0.1, 0, 0, 255), "f32[100,50]g"),
            Case("slice_b", lambda a: a[1:50:2, 3:], "f32[100,50]g"),
            Case("select_b", lambda a: a[3], "f32[100,50]g"),
            Case("diag_b", lambda a: a.diagonal(), "f32[50,50]g"),
            Case("unfold_b", lambda a: a.unfold(1, 8, 4), "f32[100,64]g"),
            Case("as_strided_b", lambda a: a.as_strided((10, 10), (1, 50)), "f32[100,50]g"),
            Case("expand_b", lambda a: a.expand(100, 50), "f32[1,50]g"),
            Case("repeat_b", lambda a: a.repeat(3, 4), "f32[10,50]g"),
            Case("split_b", lambda a: torch.cat([t * 2 for t in a.split(10, 1)], 0),
                 "f32[100,50]g"),
            Case("chunk_b", lambda a: sum(a.chunk(3, -1)), "f32[100,48]g"),
            Case("unbind_b", lambda a: torch.stack([t * 2 for t in a.unbind(0)]), "f32[8,50]g"),
            Case("clip_g", lambda a, b: torch.clamp(a, b, b + 1), "f32[100,50]g", "f32[50]"),
            Case("pad_sequence", lambda *a: torch.nn.utils.rnn.pad_sequence(a), "f32[10,8]",
                 "f32[7,8]", "f32[3,8]"),
            Case("jagged", jagged, "f32[10,8]", "f32[7,8]", "f32[3,8]"),
            Case("autocast", autocast, "f32[64,128]g", "f32[32,128]g", "f32[32]g"),
            Case("checkpoint", lambda a: torch.utils.checkpoint.checkpoint(
                lambda t: F.gelu(t).exp(), a, use_reentrant=False), "f32[100,100]g"),
            Case("pdist", torch.pdist, "f32[100,32]g"),
            Case("vander", torch.vander, "f32[100]")]
    for m, n, d in ((10, 20, 8), (300, 200, 64), (30, 20, 64)):
        for p in (2.0, 1.0, float("inf"), 3.0):
            out.append(Case("cdist %s" % p, lambda a, b, q=p: torch.cdist(a, b, q),
                            "f32[%d,%d]g" % (m, d), "f32[%d,%d]g" % (n, d)))
    return out


def iadd(a, b):
    a = a.clone()
    if a.dtype.is_floating_point:
        a += b
    a *= 2
    return a


def rope(x, angle):
    half = torch.cat([-x[..., 32:], x[..., :32]], -1)
    return x * angle.cos().to(x.dtype) + half * angle.sin().to(x.dtype)


def jagged(*parts):
    return torch.nested.nested_tensor(list(parts), layout=torch.jagged).values()


def autocast(x, w, b):
    with torch.autocast("cuda", torch.bfloat16):
        return F.layer_norm(F.linear(x, w, b), (32,)).sum()
