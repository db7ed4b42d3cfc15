"""Cases of normalization, softmax, losses, activations and dropout."""
import torch
import torch.nn.functional as F
from measure_kernels import Case

POINTWISE = ("relu", "gelu", "silu", "sigmoid", "tanh", "softplus", "elu", "selu", "mish",
             "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "logsigmoid", "softsign",
             "relu6", "celu", "hardshrink", "softshrink", "tanhshrink", "threshold")


def cases():
    out = []
    for m, n in ((1, 1), (7, 33), (64, 768), (512, 768), (4096, 1024), (8192, 768), (100000, 64),
                 (33, 4099), (2048, 4096), (129, 1000), (16384, 256), (65536, 128), (257, 8192),
                 (128, 129), (3000, 2048), (12, 100000)):
        for dtype in ("f32", "bf16", "f16"):
            x, w = "%s[%d,%d]g" % (dtype, m, n), "%s[%d]g" % (dtype, n)
            out += [Case("layer_norm", lambda a, b, c: F.layer_norm(a, b.shape, b, c), x, w, w),
                    Case("layer_norm_w", lambda a, b: F.layer_norm(a, b.shape, b), x, w),
                    Case("rms_norm", lambda a, b: F.rms_norm(a, b.shape, b), x, w),
                    Case("softmax", lambda a: F.softmax(a, -1), x),
                    Case("log_softmax", lambda a: F.log_softmax(a, -1), x),
                    Case("softmax0", lambda a: F.softmax(a, 0), x),
                    Case("softmax_f32", lambda a: F.softmax(a, -1, dtype=torch.float32), x),
                    Case("cross_entropy", F.cross_entropy, x, "i64[%d]<%d>" % (m, n))]
            if dtype != "f16":
                out += [
                    Case("layer_norm_n", lambda a: F.layer_norm(a, a.shape[-1:]), x),
                    Case("rms_norm_n", lambda a: F.rms_norm(a, a.shape[-1:]), x),
                    Case("layer_norm_T", lambda a, b, c: F.layer_norm(a, b.shape, b, c),
                         x.replace("]", "]T"), w, w),
                    Case("layer_norm_x", lambda a, b, c: F.layer_norm(a, b.shape, b, c),
                         x.replace("]g", "]"), w, w),
                    Case("softmax_T", lambda a: F.softmax(a, -1), x.replace("]", "]T")),
                    Case("cross_entropy_s", lambda a, b: F.cross_entropy(
                        a, b, label_smoothing=0.1), x, "i64[%d]<%d>" % (m, n)),
                    Case("cross_entropy_w", lambda a, b, w: F.cross_entropy(a, b, w), x,
                         "i64[%d]<%d>" % (m, n), "%s[%d]" % (dtype, n)),
                    Case("cross_entropy_n", lambda a, b: F.cross_entropy(a, b, reduction="none"), x,
                         "i64[%d]<%d>" % (m, n)),
                    Case("cross_entropy_sum", lambda a, b: F.cross_entropy(a, b, reduction="sum"),
                         x, "i64[%d]<%d>" % (m, n)),
                    Case("cross_entropy_p", lambda a, b: F.cross_entropy(a, torch.softmax(b, -1)),
                         x, x.replace("]g", "]")),
                    Case("logsumexp", lambda a: torch.logsumexp(a, -1), x)]
    for shape in ("[8,50257]", "[1024,50257]", "[2000,151936]", "[100,32000]"):
        for dtype in ("f32", "bf16"):
            n = shape[1:-1].split(",")
            out += [Case("cross_entropy", F.cross_entropy, dtype + shape + "g",
                         "i64[%s]<%s>" % tuple(n)),
                    Case("log_softmax_d", lambda a: F.log_softmax(a, -1, dtype=torch.float32),
                         dtype + shape + "g")]
    for dtype in ("f32", "bf16"):
        for shape, groups in (("[2,32,8,8]", 8), ("[8,64,56,56]", 32), ("[16,128,100]", 4),
                              ("[4,320,64,64]", 32), ("[1,512,16,16]", 1), ("[32,48,7,7]", 48),
                              ("[200,64,3,3]", 2)):
            c = shape.split(",")[1]
            w = "%s[%s]g" % (dtype, c)
            out += [Case("group_norm", lambda a, b, d, g=groups: F.group_norm(a, g, b, d),
                         dtype + shape + "g", w, w),
                    Case("group_norm_n", lambda a, g=groups: F.group_norm(a, g),
                         dtype + shape + "g"),
                    Case("local_norm", lambda a: F.local_response_norm(a, 5), dtype + shape + "g")]
            if shape.count(",") == 3:
                out.append(Case("group_norm_L", lambda a, b, d, g=groups: F.group_norm(a, g, b, d),
                                dtype + shape + "Lg", w, w))
                out.append(Case("nll2d", lambda a: F.nll_loss(F.log_softmax(a, 1),
                                                             a.detach().argmax(1)),
                                dtype + shape + "g"))
                out.append(Case("softmax1", lambda a: F.softmax(a, 1), dtype + shape + "g"))
                out.append(Case("dropout2d", lambda a: F.dropout2d(a, 0.3), dtype + shape + "g"))
        x = dtype + "[1000,333]g"
        y = dtype + "[1000,333]"
        for name in POINTWISE:
            fn = getattr(F, name)
            if name == "threshold":
                fn = lambda a: F.threshold(a, 0.1, 0.0)  # noqa: E731
            out.append(Case(name, fn, x))
            out.append(Case(name, fn, x.replace("]", "]T")))
        out += [Case("dropout", lambda a: F.dropout(a, 0.1), x),
                Case("dropout", lambda a: F.dropout(a, 0.1), dtype + "[4097,5001]g"),
                Case("native_dropout", lambda a: torch.native_dropout(a, 0.1, True)[0], x),
                Case("alpha_dropout", F.alpha_dropout, x), Case("rrelu", lambda a: F.rrelu(
                    a, training=True), x),
                Case("glu", F.glu, dtype + "[100,64]g"), Case("prelu", F.prelu, x, dtype + "[1]g"),
                Case("prelu", F.prelu, x, dtype + "[333]g"),
                Case("mse", F.mse_loss, x, y), Case("l1", F.l1_loss, x, y),
                Case("smooth_l1", F.smooth_l1_loss, x, y), Case("huber", F.huber_loss, x, y),
                Case("bce", lambda a, b: F.binary_cross_entropy(torch.sigmoid(a), torch.sigmoid(b)),
                     x, y),
                Case("bce_logits", F.binary_cross_entropy_with_logits, x, y),
                Case("kl", lambda a, b: F.kl_div(a, torch.softmax(b, -1), reduction="batchmean"), x,
                     y),
                Case("soft_margin", F.soft_margin_loss, x, y),
                Case("poisson", F.poisson_nll_loss, x, y),
                Case("gaussian", lambda a, b, v: F.gaussian_nll_loss(a, b, v), x, y,
                     dtype + "[1000,333]N"),
                Case("cosine", F.cosine_similarity, x, y),
                Case("cosine_embedding", lambda a, b: F.cosine_embedding_loss(
                    a, b, a.new_ones(1000)), x, y),
                Case("triplet", F.triplet_margin_loss, x, y, y),
                Case("margin_ranking", lambda a, b: F.margin_ranking_loss(
                    a, b, torch.ones_like(b)), x, y),
                Case("hinge", F.hinge_embedding_loss, x, y),
                Case("multi_margin", F.multi_margin_loss, x, "i64[1000]<333>"),
                Case("multilabel", F.multilabel_margin_loss, x, "i64[1000,333]<333>"),
                Case("multilabel_soft", F.multilabel_soft_margin_loss, x, y),
                Case("normalize", F.normalize, x), Case("gumbel", F.gumbel_softmax, x),
                Case("pairwise", F.pairwise_distance, x, y)]
        for cell, n in ((torch.lstm_cell, 4), (torch.gru_cell, 3)):
            specs = [dtype + "[64,100]g", dtype + "[64,128]g", dtype + "[%d,100]g" % (128 * n),
                     dtype + "[%d,128]g" % (128 * n), dtype + "[%d]g" % (128 * n),
                     dtype + "[%d]g" % (128 * n)]
            if n == 4:
                out.append(Case("lstm_cell", lambda x, h, a, b, c, d: torch.lstm_cell(
                    x, (h, h), a, b, c, d), *specs))
            else:
                out.append(Case("gru_cell", torch.gru_cell, *specs))
        out.append(Case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0),
                        dtype + "[256,512]g", dtype + "[256,1]g"))
    for t, b, c, s in ((50, 16, 20, 30), (200, 4, 100, 60)):
        for kind in ("i64", "i32"):
            dtype = torch.int64 if kind == "i64" else torch.int32
            specs = "f32[%d,%d,%d]g" % (t, b, c), "%s[%d,%d]N<%d>" % (kind, b, s, c)
            out.append(Case("ctc", lambda x, y, n=t, k=b, m=s: F.ctc_loss(
                F.log_softmax(x, 2), y, (n,) * k, (m,) * k), *specs))
            out.append(Case("ctc_tensors", lambda x, y, n=t, k=b, m=s, d=dtype: F.ctc_loss(
                F.log_softmax(x, 2), y, torch.full((k,), n, dtype=d, device=y.device),
                torch.full((k,), m, dtype=d, device=y.device)), *specs))
    return out
