"""Cases of the matrix products: cuBLAS, cuBLASLt, grouped and scaled products."""
import torch
import torch.nn.functional as F
from measure_kernels import Case

SIZES = ((32, 64, 48), (128, 768, 2304), (1000, 333, 77), (4096, 4096, 1024), (1, 512, 512),
         (512, 512, 1), (8, 8192, 8192), (17, 31, 53))


def cases():
    out = []
    for dtype in ("f32", "bf16", "f16", "f64", "c64"):
        for m, k, n in SIZES:
            a, b = "%s[%d,%d]" % (dtype, m, k), "%s[%d,%d]" % (dtype, k, n)
            out.append(Case("mm", torch.mm, a + "g", b + "g"))
            out.append(Case("mm", torch.mm, a + "T", b + "T"))
            out.append(Case("mm", torch.mm, a + "S", b + "S"))
            if dtype == "c64":
                continue
            out.append(Case("addmm", torch.addmm, "%s[%d]g" % (dtype, n), a + "g", b + "g"))
            out.append(Case("addmm", torch.addmm, "%s[%d,%d]g" % (dtype, m, n), a + "g", b + "g"))
            out.append(Case("addmm_beta", lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2),
                            "%s[%d]" % (dtype, n), a, b))
            out.append(Case("addmm_column", torch.addmm, "%s[%d,1]" % (dtype, m), a, b))
            out.append(Case("linear", F.linear, a + "g", "%s[%d,%d]g" % (dtype, n, k),
                            "%s[%d]g" % (dtype, n)))
            out.append(Case("linear3", F.linear, "%s[2,%d,%d]g" % (dtype, m, k),
                            "%s[%d,%d]g" % (dtype, n, k), "%s[%d]g" % (dtype, n)))
            out.append(Case("linear_free", F.linear, a + "g", "%s[%d,%d]g" % (dtype, n, k)))
            out.append(Case("addmm_gelu", lambda c, x, y: torch._addmm_activation(
                c, x, y, use_gelu=True), "%s[%d]" % (dtype, n), a, b))
            out.append(Case("addmm_relu", torch._addmm_activation, "%s[%d]" % (dtype, n), a, b))
            out.append(Case("mv", torch.mv, a + "g", "%s[%d]g" % (dtype, k)))
            out.append(Case("addmv", torch.addmv, "%s[%d]" % (dtype, m), a, "%s[%d]" % (dtype, k)))
        for batch, m, k, n in ((2, 64, 32, 48), (16, 128, 128, 64), (7, 33, 65, 17), (64, 1, 128, 1),
                               (1, 1000, 500, 300)):
            a, b = "%s[%d,%d,%d]" % (dtype, batch, m, k), "%s[%d,%d,%d]" % (dtype, batch, k, n)
            out.append(Case("bmm", torch.bmm, a + "g", b + "g"))
            out.append(Case("bmm", torch.bmm, a + "T", b + "T"))
            out.append(Case("bmm", torch.bmm, a + "S", b))
            out.append(Case("bmm_expand", lambda x, y: torch.bmm(x, y[:1].expand(y.shape)), a, b))
            out.append(Case("baddbmm", torch.baddbmm, "%s[%d,%d,%d]g" % (dtype, batch, m, n),
                            a + "g", b + "g"))
            out.append(Case("baddbmm", torch.baddbmm, "%s[%d]" % (dtype, n), a, b))
            out.append(Case("addbmm", torch.addbmm, "%s[%d,%d]" % (dtype, m, n), a, b))
            out.append(Case("matmul", torch.matmul, "%s[%d,%d]g" % (dtype, m, k), b + "g"))
            out.append(Case("matmul4", torch.matmul, "%s[3,%d,%d,%d]g" % (dtype, batch, m, k),
                            b + "g"))
        out.append(Case("dot", torch.dot, dtype + "[1000]g", dtype + "[1000]g"))
        out.append(Case("dot", torch.dot, dtype + "[1000000]", dtype + "[1000000]"))
        out.append(Case("vdot", torch.vdot, dtype + "[1000]", dtype + "[1000]"))
        out.append(Case("addr", torch.addr, dtype + "[100,200]", dtype + "[100]", dtype + "[200]"))
        out.append(Case("outer", torch.outer, dtype + "[100]g", dtype + "[200]g"))
        out.append(Case("einsum", lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y),
                        dtype + "[2,4,64,32]g", dtype + "[2,4,48,32]g"))
        if dtype == "c64":
            continue
        out.append(Case("bilinear", F.bilinear, dtype + "[64,32]g", dtype + "[64,16]g",
                        dtype + "[8,32,16]g", dtype + "[8]g"))
    out += [Case("mm_dtype", lambda a, b: torch.mm(a, b, out_dtype=torch.float32), "bf16[128,256]",
                 "bf16[256,64]"),
            Case("baddbmm_dtype", lambda a, b, c: torch.baddbmm(c, a, b, torch.float32),
                 "bf16[2,128,256]", "bf16[2,256,64]", "f32[2,128,64]"),
            Case("int_mm", torch._int_mm, "i8[128,256]", "i8[256,64]"),
            Case("int_mm", torch._int_mm, "i8[128,256]", "i8[256,64]T"),
            Case("addmm_", lambda c, a, b: c.addmm_(a, b), "f32[128,64]", "f32[128,256]",
                 "f32[256,64]"),
            Case("baddbmm_", lambda c, a, b: c.baddbmm_(a, b), "f32[4,128,64]", "f32[4,128,256]",
                 "f32[4,256,64]"),
            Case("addmm_out", lambda c, a, b: torch.addmm(c, a, b, out=torch.empty_like(c)),
                 "bf16[128,64]", "bf16[128,256]", "bf16[256,64]"),
            Case("side_stream", side_stream, "bf16[128,64]", "bf16[64,256]"),
            Case("side_stream_lt", side_stream_lt, "bf16[256]", "bf16[128,64]", "bf16[64,256]")]
    for m, k, n in ((128, 256, 512), (4096, 1024, 2048), (32, 8192, 128)):
        a, b = "f8[%d,%d]" % (m, k), "f8[%d,%d]T" % (k, n)
        out.append(Case("scaled_mm", lambda x, y, s, t: torch._scaled_mm(
            x, y, s, t, out_dtype=torch.bfloat16), a, b, "f32[]", "f32[]"))
        out.append(Case("scaled_mm_bias", lambda x, y, s, t, c: torch._scaled_mm(
            x, y, s, t, bias=c, out_dtype=torch.bfloat16), a, b, "f32[]", "f32[]",
            "bf16[%d]" % n))
        out.append(Case("scaled_mm_rows", lambda x, y, s, t: torch._scaled_mm(
            x, y, s, t, out_dtype=torch.bfloat16), a, b, "f32[%d,1]N" % m, "f32[1,%d]N" % n))
        out.append(Case("scaled_mm_fast", lambda x, y, s, t: torch._scaled_mm(
            x, y, s, t, out_dtype=torch.bfloat16, use_fast_accum=True), a, b, "f32[]", "f32[]"))
        for groups in (4, 32):
            offs = torch.arange(1, groups + 1, dtype=torch.int32) * (m // groups)
            out.append(Case("grouped_mm", lambda x, y, o=offs: torch._grouped_mm(
                x, y, offs=o.to(x.device)), "bf16[%d,%d]g" % (m, k),
                "bf16[%d,%d,%d]g" % (groups, k, n)))
            out.append(Case("grouped_mm_t", lambda x, y, o=offs: torch._grouped_mm(
                x, y.transpose(-1, -2), offs=o.to(x.device)), "bf16[%d,%d]g" % (m, k),
                "bf16[%d,%d,%d]g" % (groups, n, k)))
            out.append(Case("scaled_grouped_mm", lambda x, y, s, t, o=offs: torch._scaled_grouped_mm(
                x, y.transpose(-1, -2), s, t, offs=o.to(x.device), out_dtype=torch.bfloat16),
                a, "f8[%d,%d,%d]" % (groups, n, k), "f32[%d]N" % m, "f32[%d,%d]N" % (groups, n)))
        out.append(Case("grouped_mm3", lambda x, y: torch._grouped_mm(x, y),
                        "bf16[4,%d,%d]" % (m, k), "bf16[4,%d,%d]" % (k, n)))
    return out


def side_stream(a, b):
    with torch.cuda.stream(torch.cuda.Stream()):
        return torch.mm(a, b)


def side_stream_lt(c, a, b):
    with torch.cuda.stream(torch.cuda.Stream()):
        return torch.addmm(c, a, b)
