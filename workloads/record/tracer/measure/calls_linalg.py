"""Cases of linear algebra, Fourier transforms and sparse matrices."""
import torch
from measure_kernels import Case

L = torch.linalg


def cases():
    out = []
    for dtype in ("f32", "f64", "c64"):
        for shape in ("[16,16]", "[100,100]", "[513,513]", "[1500,1500]", "[4,32,32]", "[64,100,100]",
                      "[3,300,300]"):
            n = shape[1:-1].split(",")[-1]
            x, p, g = dtype + shape, dtype + shape + "P", dtype + shape + "g"
            b = dtype + shape.replace("," + n + "]", ",5]")
            if dtype != "f32" and shape in ("[1500,1500]", "[513,513]", "[64,100,100]"):
                continue
            g = g if dtype == "f32" else x
            out += [Case("cholesky", L.cholesky, p + ("g" if dtype == "f32" else "")),
                    Case("cholesky_solve", torch.cholesky_solve, b, p),
                    Case("cholesky_inverse", torch.cholesky_inverse, p),
                    Case("qr", L.qr, g), Case("qr_r", lambda a: L.qr(a, mode="r"), x),
                    Case("svd", lambda a: L.svd(a, full_matrices=False), g, outs=3),
                    Case("svdvals", L.svdvals, x), Case("eigh", L.eigh, p),
                    Case("eigvalsh", L.eigvalsh, p), Case("inv", L.inv, g), Case("solve", L.solve, p,
                                                                                b),
                    Case("solve_g", L.solve, g, b), Case("det", L.det, g), Case("slogdet",
                                                                                L.slogdet, x),
                    Case("lu", L.lu, g), Case("lu_factor", L.lu_factor, x),
                    Case("lstsq", L.lstsq, x, b), Case("pinv", L.pinv, x),
                    Case("triangular", lambda a, c: L.solve_triangular(a.tril(), c, upper=False), p,
                         b),
                    Case("matrix_exp", L.matrix_exp, x), Case("matrix_power", lambda a:
                                                              L.matrix_power(a, 5), x),
                    Case("matrix_norm", L.matrix_norm, x), Case("nuclear", lambda a:
                                                                L.matrix_norm(a, "nuc"), x),
                    Case("cond", L.cond, x), Case("rank", L.matrix_rank, x),
                    Case("lu_solve", lambda a, c: L.lu_solve(*L.lu_factor(a), c), p, b)]
            if shape in ("[16,16]", "[100,100]"):
                out.append(Case("eig", L.eig, x))
                out.append(Case("householder", lambda a: L.householder_product(
                    *torch.geqrf(a)), x))
        out += [Case("qr_tall", L.qr, dtype + "[1000,50]"), Case("qr_wide", L.qr, dtype + "[50,1000]"),
                Case("svd_tall", lambda a: L.svd(a, full_matrices=False), dtype + "[1000,50]"),
                Case("lstsq_tall", L.lstsq, dtype + "[1000,50]", dtype + "[1000,3]")]
    for n in (40, 96, 200, 384, 600, 768, 900, 1024, 1280, 1792, 2048, 2500, 3072, 4096):
        x = "f32[%d,%d]" % (n, n)
        out += [Case("large_eigh", L.eigh, x + "P"), Case("large_qr", L.qr, x), Case("large_inv", L.inv, x + "P"),
                Case("large_cholesky", L.cholesky, x + "P"), Case("large_solve", L.solve, x + "P", "f32[%d,64]" % n)]
        if n <= 2048:
            out.append(Case("large_svd", lambda a: L.svd(a, full_matrices=False), x, outs=3))
    for shape in ("[1024]", "[1000]", "[1009]", "[64,400]", "[8,4096]", "[16,128,128]", "[3,97,101]",
                  "[2,16000]", "[1000000]", "[32,500]"):
        for dtype in ("f32", "c64", "f64"):
            x = dtype + shape + "g"
            out += [Case("fft", torch.fft.fft, x), Case("ifft", torch.fft.ifft, x)]
            if dtype[0] == "f":
                out += [Case("rfft", torch.fft.rfft, x),
                        Case("irfft", lambda a: torch.fft.irfft(torch.fft.rfft(a)), x)]
            if shape.count(","):
                out += [Case("fft2", torch.fft.fft2, x), Case("fft_0", lambda a: torch.fft.fft(
                    a, dim=0), x), Case("fftn", torch.fft.fftn, x),
                    Case("fftshift", torch.fft.fftshift, x)]
                if dtype[0] == "f":
                    out.append(Case("rfft2", torch.fft.rfft2, x))
                    out.append(Case("irfft2", lambda a: torch.fft.irfft2(torch.fft.rfft2(a)), x))
    for n in (16000, 160000):
        for width in (400, 512):
            out.append(Case("stft", lambda a, w=width: torch.stft(
                a, w, 160, window=torch.hann_window(w, device=a.device), return_complex=True),
                "f32[2,%d]g" % n))
            out.append(Case("istft", lambda a, w=width: torch.istft(torch.stft(
                a, w, 160, window=torch.hann_window(w, device=a.device), return_complex=True), w,
                160, window=torch.hann_window(w, device=a.device)), "f32[2,%d]" % n))
    for m, n, k in ((100, 80, 16), (3000, 3000, 64)):
        b = "f32[%d,%d]g" % (n, k)
        for layout in ("coo", "csr"):
            def sparse(a, c, kind=layout):
                a = a * (a > 1.5)
                return (a.to_sparse() if kind == "coo" else a.to_sparse_csr()), c
            a = "f32[%d,%d]" % (m, n)
            out += [Case("sparse_mm_" + layout, lambda p: torch.mm(*p), a, b.replace("g", ""),
                         setup=sparse),
                    Case("sparse_addmm_" + layout, lambda p: torch.sparse.addmm(
                        torch.zeros(p[0].shape[0], p[1].shape[1], device=p[1].device), *p), a,
                        b.replace("g", ""), setup=sparse),
                    Case("sparse_mv_" + layout, lambda p: p[0] @ p[1][:, 0].contiguous(), a,
                         b.replace("g", ""), setup=sparse),
                    Case("sparse_dense_" + layout, lambda p: p[0].to_dense(), a, b.replace("g", ""),
                         setup=sparse)]
        out += [Case("to_sparse", lambda c: c.to_sparse(), "f32[%d,%d]Z" % (m, n)),
                Case("to_csr", lambda c: c.to_sparse_csr(), "f32[%d,%d]" % (m, n)),
                Case("coalesce", lambda i, v: torch.sparse_coo_tensor(
                    i, v, (n, n)).coalesce().values(), "i64[2,%d]<%d>" % (5 * m, n),
                    "f32[%d]" % (5 * m)),
                Case("sparse_sum", lambda i, v: torch.sparse.sum(torch.sparse_coo_tensor(
                    i, v, (n, n))), "i64[2,%d]<%d>" % (5 * m, n), "f32[%d]" % (5 * m)),
                Case("sparse_grad", lambda i, v, c: torch.sparse.mm(torch.sparse_coo_tensor(
                    i, v, (n, n)), c), "i64[2,%d]<%d>" % (5 * m, n), "f32[%d]" % (5 * m), b)]
    return out
