"""Cases of reductions: their global buffers and semaphores."""
import torch
from measure_kernels import Case

SHAPES = ("[]", "[1]", "[100]", "[5000]", "[70000]", "[1000003]", "[16777216]", "[3,500000]",
          "[64,70000]", "[500000,3]", "[2000000,64]", "[1024,1024]", "[128,128]", "[16,512,768]",
          "[8,64,56,56]", "[4,3,224,224]", "[32,2048,7,7]", "[4096,50257]", "[33,77,55]",
          "[131072,16]", "[8192,4096]", "[2,8,1024,1024]", "[20000,200]")
WHOLE = {"sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "var": torch.var,
         "std": torch.std, "norm": torch.linalg.vector_norm, "max": torch.max, "min": torch.min,
         "argmax": torch.argmax, "any": torch.any, "all": torch.all,
         "count_nonzero": torch.count_nonzero, "nansum": torch.nansum, "amax": torch.amax,
         "aminmax": torch.aminmax, "var_mean": torch.var_mean,
         "norm1": lambda a: torch.linalg.vector_norm(a, 1),
         "norm0": lambda a: torch.linalg.vector_norm(a, 0),
         "norminf": lambda a: torch.linalg.vector_norm(a, float("inf")),
         "sum_f32": lambda a: torch.sum(a, dtype=torch.float32),
         "sum_f64": lambda a: torch.sum(a, dtype=torch.float64),
         "isfinite": lambda a: torch.isfinite(a).all(),
         "nanmean": torch.nanmean}
FLOAT = {"mean", "var", "std", "norm", "norm1", "norm0", "norminf", "var_mean", "nanmean"}
DIMS = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "var": torch.var,
        "norm": lambda a, d: torch.linalg.vector_norm(a, 2, d),
        "logsumexp": torch.logsumexp, "var_mean": torch.var_mean, "std": torch.std,
        "max": torch.max, "argmax": torch.argmax, "any": torch.any, "prod": torch.prod,
        "aminmax": lambda a, d: torch.aminmax(a, dim=d),
        "sum_keep": lambda a, d: torch.sum(a, d, keepdim=True),
        "sum_f32": lambda a, d: torch.sum(a, d, dtype=torch.float32),
        "count_nonzero": torch.count_nonzero}
ONE = {"max", "argmax", "prod", "aminmax"}  # these take one dimension


def cases():
    out = []
    for shape in SHAPES:
        big = shape in ("[2000000,64]", "[4096,50257]")
        for dtype in ("f32", "bf16", "f64", "i64", "b", "i32", "f16"):
            if big and dtype not in ("f32", "bf16", "b"):
                continue
            for name, fn in WHOLE.items():
                if dtype[0] not in "bf" and name in FLOAT or dtype == "b" and (
                        name in FLOAT or name in ("prod", "nansum")):
                    continue
                if dtype != "f32" and name not in ("sum", "mean", "max", "norm", "var", "argmax"):
                    continue
                out.append(Case(name, fn, dtype + shape))
            dims = shape[1:-1].split(",") if len(shape) > 2 else []
            if len(dims) < 2:
                continue
            sets = [(d,) for d in range(len(dims))]
            if len(dims) == 3:
                sets += [(0, 1), (1, 2), (0, 2)]
            if len(dims) == 4:
                sets += [(0, 2, 3), (2, 3), (0, 1), (1, 2, 3), (0, 3)]
            for name, fn in DIMS.items():
                if dtype[0] not in "bf" and name in FLOAT | {"logsumexp"} or dtype == "b" and (
                        name in FLOAT or name in ("prod", "logsumexp", "aminmax")):
                    continue
                if dtype != "f32" and name not in ("sum", "mean", "max", "var", "any"):
                    continue
                for dim in sets:
                    if name in ONE:
                        if len(dim) > 1:
                            continue
                        dim = dim[0]
                    out.append(Case("%s%s" % (name, dim), lambda a, f=fn, d=dim: f(a, d),
                                    dtype + shape))
    for dim in ((0,), (1,), (0, 1)):
        for shape in ("[3000,4000]", "[64,100000]", "[100000,64]"):
            for flag in "TS":
                out.append(Case("sum%s" % (dim,), lambda a, d=dim: a.sum(d), "f32" + shape + flag))
        out.append(Case("sum_expand", lambda a, d=dim: a.expand(5000, 1000).sum(d), "f32[1000]"))
    for dim in ((0, 2, 3), (1,), (2, 3)):
        out.append(Case("sum_cl%s" % (dim,), lambda a, d=dim: a.sum(d), "f32[8,64,56,56]L"))
        out.append(Case("mean_cl%s" % (dim,), lambda a, d=dim: a.mean(d), "bf16[32,256,28,28]L"))
    for shape in ("[1000003]", "[64,70000]", "[2000,3000]"):
        out += [Case("var_g", torch.var, "f32" + shape + "g"),
                Case("norm_g", torch.linalg.vector_norm, "f32" + shape + "g"),
                Case("std_g", lambda a: torch.std(a, -1), "f32" + shape + "g"),
                Case("prod_g", torch.prod, "f32" + shape + "g"),
                Case("amax_g", torch.amax, "f32" + shape + "g"),
                Case("max_g", lambda a: torch.max(a, -1)[0], "f32" + shape + "g"),
                Case("logsumexp_g", lambda a: torch.logsumexp(a, -1), "f32" + shape + "g"),
                Case("mean_g", torch.mean, "bf16" + shape + "g"),
                Case("dist", torch.dist, "f32" + shape + "g", "f32" + shape),
                Case("allclose", torch.allclose, "f32" + shape, "f32" + shape),
                Case("quantile", lambda a: torch.quantile(a.flatten()[:1000000], 0.5),
                     "f32" + shape),
                Case("std_mean", torch.std_mean, "f32" + shape),
                Case("cov", torch.cov, "f32[20,3000]"),
                Case("item", lambda a: a.sum().item(), "f32" + shape)]
    return out
