"""Writes cudnn_layers.tsv.gz: the layers of all models of torchvision and timm, for cudnn_cases.py.

    python3 cudnn_layers.py > layers.tsv

Models have no weights (meta tensors) and run once; one that takes more than 20 seconds keeps the layers that it reached.
Lines: input, weight, stride, padding, dilation, groups.
"""
import signal
import sys
import warnings

import timm
import torch
import torchvision

VIDEOS = ("mc3", "r3d", "r2plus", "s3d", "mvit_v", "swin3d")
BACKBONES = ("resnet50_", "lraspp", "_fpn", "deeplab", "fcn", "ssd")


class Late(Exception):
    pass


def late(*_):
    raise Late


def text(values):
    return "x".join(map(str, values))


def layers_of(make, size):
    rows = set()

    def seen(layer, inputs, _):
        padding = layer.padding
        if isinstance(padding, str):
            padding = [(k - 1) // 2 if padding == "same" else 0 for k in layer.kernel_size]
        rows.add((text(inputs[0].shape[1:]), text(layer.weight.shape), text(layer.stride), text(padding),
                  text(layer.dilation), str(layer.groups)))
    signal.alarm(20)
    try:
        with torch.device("meta"), torch.no_grad():
            net = make().eval()
            for layer in net.modules():
                if isinstance(layer, torch.nn.Conv2d):
                    layer.register_forward_hook(seen)
            net(torch.empty(size, device="meta"))
    except Exception as error:
        print(type(error).__name__, error, file=sys.stderr)
    signal.alarm(0)
    return rows


def models():
    for name in torchvision.models.list_models():
        more = {"weights_backbone": None} if any(word in name for word in BACKBONES) else {}
        size = (1, 3, 16, 112, 112) if any(word in name for word in VIDEOS) else (2, 3, 224, 224)
        yield lambda: torchvision.models.get_model(name, weights=None, **more), size
    for name in timm.list_models():
        cfg = timm.get_pretrained_cfg(name)
        size = getattr(cfg, "input_size", None) or (3, 224, 224)
        yield lambda: timm.create_model(name, pretrained=False), (1, *size)


def main():
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGALRM, late)
    rows = set()
    for make, size in models():
        rows |= layers_of(make, size)
    print(f"# input, weight, stride, padding, dilation, groups: cudnn_layers.py, torchvision {torchvision.__version__}, "
          f"timm {timm.__version__}")
    for row in sorted(rows, key=lambda r: [int(v) for v in r[1].split("x") + r[0].split("x")]):
        print("\t".join(row))


if __name__ == "__main__":
    main()
