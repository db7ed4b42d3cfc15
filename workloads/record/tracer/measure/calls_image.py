"""Cases of pooling, resizing, sampling, padding and patches."""
import torch
import torch.nn.functional as F
from measure_kernels import Case


def cases():
    out = []
    for dtype in ("f32", "bf16"):
        for shape in ("[2,3,32,32]", "[8,64,56,56]", "[1,17,33,45]"):
            for layout in ("", "L"):
                x = dtype + shape + layout + "g"
                for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact"):
                    out.append(Case("resize_" + mode, lambda a, m=mode: F.interpolate(
                        a, scale_factor=2, mode=m), x))
                    out.append(Case("shrink_" + mode, lambda a, m=mode: F.interpolate(
                        a, size=(16, 16), mode=m), x))
                    if mode in ("bilinear", "bicubic"):
                        out.append(Case("shrink_aa_" + mode, lambda a, m=mode: F.interpolate(
                            a, size=(16, 16), mode=m, antialias=True), x))
                out += [
                    Case("max_pool", lambda a: F.max_pool2d(a, 2), x),
                    Case("max_pool_3", lambda a: F.max_pool2d(a, 3, 2, 1), x),
                    Case("max_pool_d", lambda a: F.max_pool2d(a, 3, 1, dilation=2), x),
                    Case("avg_pool", lambda a: F.avg_pool2d(a, 3, 2, 1), x),
                    Case("adaptive_avg", lambda a: F.adaptive_avg_pool2d(a, 1), x),
                    Case("adaptive_avg7", lambda a: F.adaptive_avg_pool2d(a, 7), x),
                    Case("adaptive_max", lambda a: F.adaptive_max_pool2d(a, 7), x),
                    Case("lp_pool", lambda a: F.lp_pool2d(a, 2, 2), x),
                    Case("fractional", lambda a: F.fractional_max_pool2d(a, 2, output_size=8), x),
                    None if "33" in shape else Case("unpool", lambda a: F.max_unpool2d(*F.max_pool2d(
                        a, 2, return_indices=True), 2), x),
                    Case("shuffle", lambda a: F.pixel_shuffle(a.repeat(1, 4, 1, 1), 2), x),
                    Case("unfold", lambda a: F.unfold(a, 3, padding=1), x),
                    Case("fold", lambda a: F.fold(F.unfold(a, 2, stride=1), a.shape[2:], 2), x),
                    Case("pad", lambda a: F.pad(a, (1, 2, 3, 4)), x),
                    Case("pad_reflect", lambda a: F.pad(a, (1, 2, 3, 4), mode="reflect"), x),
                    Case("pad_replicate", lambda a: F.pad(a, (1, 2, 3, 4), mode="replicate"), x),
                    Case("pad_circular", lambda a: F.pad(a, (1, 2, 3, 4), mode="circular"), x),
                    Case("channel_shuffle", lambda a: F.channel_shuffle(
                        a.repeat(1, 2, 1, 1), 2), x)]
                if dtype == "f32" or layout == "":
                    n = shape[1:-1].split(",")[0]
                    for mode in ("bilinear", "nearest", "bicubic"):
                        out.append(Case("grid_" + mode, lambda a, g, m=mode: F.grid_sample(
                            a, g, mode=m, align_corners=False), x, "%s[%s,20,24,2]g" % (dtype, n)))
                    out.append(Case("affine", lambda t, k=shape: F.affine_grid(
                        t, [int(v) for v in k[1:-1].split(",")], align_corners=False),
                        "%s[%s,2,3]g" % (dtype, n)))
        for shape in ("[2,4,16,16,16]", "[1,16,20,31,33]"):
            x = dtype + shape + "g"
            out += [Case("max_pool3", lambda a: F.max_pool3d(a, 2), x),
                    Case("avg_pool3", lambda a: F.avg_pool3d(a, 2), x),
                    Case("adaptive3", lambda a: F.adaptive_avg_pool3d(a, 3), x),
                    Case("adaptive_max3", lambda a: F.adaptive_max_pool3d(a, 3), x),
                    Case("trilinear", lambda a: F.interpolate(a, scale_factor=2, mode="trilinear"),
                         x),
                    Case("nearest3", lambda a: F.interpolate(a, scale_factor=2), x),
                    Case("pad3", lambda a: F.pad(a, (1, 1, 1, 1, 1, 1), mode="replicate"), x),
                    Case("grid3", lambda a: F.grid_sample(a, torch.zeros(
                        a.shape[0], 5, 6, 7, 3, device=a.device, dtype=a.dtype).requires_grad_(),
                        align_corners=False), x)]
        for shape in ("[4,16,100]", "[2,80,3000]"):
            x = dtype + shape + "g"
            out += [Case("max_pool1", lambda a: F.max_pool1d(a, 2), x),
                    Case("max_pool1_free", lambda a: F.max_pool1d(a, 2), dtype + shape),
                    Case("avg_pool1", lambda a: F.avg_pool1d(a, 2), x),
                    Case("adaptive1", lambda a: F.adaptive_avg_pool1d(a, 7), x),
                    Case("adaptive_max1", lambda a: F.adaptive_max_pool1d(a, 7), x),
                    Case("linear1", lambda a: F.interpolate(a, scale_factor=2, mode="linear"), x),
                    Case("nearest1", lambda a: F.interpolate(a, scale_factor=2), x),
                    Case("pad1", lambda a: F.pad(a, (2, 3), mode="reflect"), x)]
    return [c for c in out if c]
