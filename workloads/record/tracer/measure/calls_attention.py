"""Cases of scaled dot product attention by backend, and the fast paths of transformers."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from measure_kernels import Case

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}


def attend(backend, **options):
    def call(q, k, v, *mask):
        with sdpa_kernel(BACKENDS[backend]):
            return F.scaled_dot_product_attention(q, k, v, *mask, **options)
    return call


def default(q, k, v, *mask):
    return F.scaled_dot_product_attention(q, k, v, *mask)


def varlen(q, k, v, offsets):
    from torch.nn.attention.varlen import varlen_attn
    longest = int(offsets.diff().max())
    return varlen_attn(q, k, v, offsets, offsets, longest, longest)


def transposed(fn):
    """q, k, v as a model has them: (batch, length, heads, width) seen as (batch, heads, ...)."""
    def call(q, k, v, *mask):
        return fn(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), *mask)
    return call


def cases():
    out = []
    shapes = ((2, 12, 1024, 1024, 64), (1, 4, 77, 77, 40), (4, 8, 197, 197, 80), (2, 3, 128, 300, 96),
              (1, 32, 2048, 2048, 128), (8, 16, 100, 1000, 32), (2, 4, 513, 513, 256),
              (1, 8, 1, 1024, 128), (16, 12, 1, 100, 64), (4, 16, 1, 4096, 128),
              (1, 2, 4096, 4096, 64), (3, 5, 333, 65, 192), (2, 8, 64, 64, 72), (1, 1, 7, 7, 16),
              (6, 4, 1500, 1500, 64), (2, 20, 256, 1500, 64), (1, 16, 129, 129, 128))
    for b, h, s, t, d in shapes:
        for dtype in ("bf16", "f16", "f32"):
            q, k = "%s[%d,%d,%d,%d]g" % (dtype, b, h, s, d), "%s[%d,%d,%d,%d]g" % (dtype, b, h, t, d)
            m = "%s[%d,%d,%d,%d]" % (dtype, b, 1, s, t)
            free = q.replace("g", ""), k.replace("g", ""), k.replace("g", "")
            tq = "%s[%d,%d,%d,%d]g" % (dtype, b, s, h, d)
            tk = "%s[%d,%d,%d,%d]g" % (dtype, b, t, h, d)
            for backend in BACKENDS:
                if dtype == "f32" and backend in ("flash", "cudnn"):
                    continue
                if dtype == "f16" and backend != "efficient" and (s, t) != (1024, 1024):
                    continue
                fn = attend(backend)
                out.append(Case(backend, fn, q, k, k))
                out.append(Case(backend + "_free", fn, *free))
                out.append(Case(backend + "_t", transposed(fn), tq, tk, tk))
                out.append(Case(backend + "_causal", attend(backend, is_causal=True), q, k, k))
                out.append(Case(backend + "_drop", attend(backend, dropout_p=0.1), q, k, k))
                if backend != "flash":
                    out.append(Case(backend + "_mask", fn, q, k, k, m))
                    out.append(Case(backend + "_mask_b", fn, q, k, k,
                                    "b[%d,1,%d,%d]" % (b, s, t)))
                    out.append(Case(backend + "_mask_t", transposed(fn), tq, tk, tk, m))
                if backend in ("efficient", "math"):
                    out.append(Case(backend + "_mask_g", fn, q, k, k, m + "g"))
            out.append(Case("default", default, q, k, k))
            out.append(Case("default_mask", default, *free, m))
        if h % 4 == 0:
            kv = "bf16[%d,%d,%d,%d]g" % (b, h // 4, t, d)
            q = "bf16[%d,%d,%d,%d]g" % (b, h, s, d)
            for backend in ("flash", "cudnn", "math"):
                out.append(Case(backend + "_gqa", attend(backend, enable_gqa=True), q, kv, kv))
    for d, n in ((64, 4000), (128, 1000)):
        specs = ["bf16[%d,8,%d]g" % (n, d)] * 3
        out.append(Case("varlen", varlen, *specs, "i32[11]O<%d>" % n))
    torch_layer = torch.nn.TransformerEncoderLayer
    for dtype in ("f32", "bf16"):
        for width, heads in ((256, 4), (768, 12)):
            def setup(x, w=width, h=heads):
                layer = torch_layer(w, h, 4 * w, batch_first=True, device=x.device, dtype=x.dtype)
                return layer, x

            def infer(pair):
                with torch.no_grad():
                    return pair[0].eval()(pair[1])

            def train(pair):
                return pair[0].train()(pair[1])

            out.append(Case("encoder_infer", infer, "%s[4,128,%d]" % (dtype, width), setup=setup))
            out.append(Case("encoder_train", train, "%s[4,128,%d]" % (dtype, width), setup=setup,
                            grads=lambda pair: list(pair[0].parameters())))
    return out
