"""The shapes of convolutions and batch norms of public architectures, for measure/cudnn.py.

Builds each model on the meta device (shapes, no data), runs it once with a batch of 2, and writes
one line for each different layer: cudnn_shapes.tsv. It needs torch, torchvision, timm, transformers
and diffusers; the file is in the tree, so that a measurement does not need them.

    python3 cudnn_shapes.py > cudnn_shapes.tsv

Columns: kind (conv or bn), the architectures that have it, then
  conv: C,spatial size; K,C/groups,kernel; stride; padding; dilation; groups; transposed; output padding; bias
  bn:   C,spatial size
The batch size is not part of a shape: the measurement varies it.
"""
import sys
import torch
from torch import nn

rows = {}


def note(kind, name, key):
    rows.setdefault((kind, key), set()).add(name)


def watch(model, name):
    def hook(module, args, output):
        x = args[0]
        text = lambda v: "x".join(str(int(i)) for i in v)
        if isinstance(module, nn.modules.conv._ConvNd):
            pad = module.padding
            if isinstance(pad, str):
                pad = [0] * len(module.kernel_size) if pad == "valid" else \
                    [d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size)]
            note("conv", name, (text(x.shape[1:]), text(module.weight.shape), text(module.stride), text(pad),
                                text(module.dilation), str(module.groups), str(int(module.transposed)),
                                text(module.output_padding), str(int(module.bias is not None))))
        elif isinstance(module, nn.modules.batchnorm._BatchNorm):
            note("bn", name, (text(x.shape[1:]),))
    for m in model.modules():
        if isinstance(m, (nn.modules.conv._ConvNd, nn.modules.batchnorm._BatchNorm)):
            m.register_forward_hook(hook)
    return model


def run(name, make, *inputs, **more):
    try:
        with torch.device("meta"), torch.no_grad():
            model = watch(make(), name)
            model.train() if not more.pop("evaluate", False) else model.eval()
            model(*[i() if callable(i) else i for i in inputs], **{k: v() for k, v in more.items()})
    except Exception as error:  # one model that a version lacks does not stop the others
        print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


def image(size, channels=3, batch=2):
    return lambda: torch.empty(batch, channels, size, size)


def torchvision_models():
    import torchvision.models as tv
    for name in ("resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "vgg16", "vgg11_bn",
                 "alexnet", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0",
                 "efficientnet_b3", "efficientnet_v2_s", "convnext_tiny", "convnext_base", "regnet_y_400mf",
                 "regnet_x_8gf", "shufflenet_v2_x1_0", "mnasnet1_0", "googlenet", "vit_b_16", "swin_t",
                 "maxvit_t"):
        run(name, lambda: getattr(tv, name)(weights=None), image(224))
    run("inception_v3", lambda: tv.inception_v3(weights=None, init_weights=False), image(299))
    run("resnet50_cifar", lambda: tv.resnet18(weights=None), image(32))
    for name in ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
        run(name, lambda: getattr(tv.segmentation, name)(weights=None, weights_backbone=None), image(384))
    for name in ("r3d_18", "mc3_18", "r2plus1d_18", "s3d", "swin3d_t"):
        run(name, lambda: getattr(tv.video, name)(weights=None), lambda: torch.empty(2, 3, 16, 112, 112))


def timm_models():
    import timm
    for name in ("vit_base_patch16_224", "vit_large_patch14_224", "nfnet_f0", "hrnet_w18", "dpn68", "res2net50_26w_4s",
                 "efficientnetv2_rw_s", "mixnet_s", "ghostnet_100", "xception65", "convmixer_768_32", "poolformer_s12",
                 "coatnet_0_rw_224", "repvgg_b0", "darknet53", "cspresnet50", "resnest50d", "convnextv2_nano"):
        model = timm.create_model(name, pretrained=False)
        size = model.default_cfg["input_size"][-1]
        run(name, lambda: timm.create_model(name, pretrained=False), image(size))


def transformer_models():
    import transformers as t
    for seconds in (5, 15):
        run(f"wav2vec2_{seconds}s", lambda: t.Wav2Vec2Model(t.Wav2Vec2Config(num_hidden_layers=1,
            mask_time_prob=0.0, apply_spec_augment=False)), lambda: torch.empty(2, 16000 * seconds))
    run("hubert_large", lambda: t.HubertModel(t.HubertConfig(
        hidden_size=1024, num_hidden_layers=1, num_attention_heads=16, intermediate_size=4096,
        feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, apply_spec_augment=False)),
        lambda: torch.empty(2, 16000 * 10))
    run("segformer_b0", lambda: t.SegformerModel(t.SegformerConfig()), image(512))
    run("detr_backbone_800", lambda: __import__("torchvision").models.resnet50(weights=None), image(800))
    run("clip_b32", lambda: t.CLIPVisionModel(t.CLIPVisionConfig(num_hidden_layers=1)), image(224))
    run("mamba", lambda: t.MambaModel(t.MambaConfig(num_hidden_layers=1, hidden_size=768, use_mambapy=False)),
        lambda: torch.zeros(2, 512, dtype=torch.long))


def diffusion_models():
    import diffusers as d
    run("unet_sd15", lambda: d.UNet2DConditionModel(
        sample_size=64, block_out_channels=(320, 640, 1280, 1280), cross_attention_dim=768, attention_head_dim=8),
        image(64, 4), lambda: torch.zeros(2), lambda: torch.empty(2, 77, 768))
    run("unet_ddpm", lambda: d.UNet2DModel(sample_size=32, block_out_channels=(128, 256, 256, 256),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D")), image(32),
        lambda: torch.zeros(2))
    run("unet_128", lambda: d.UNet2DModel(sample_size=128, block_out_channels=(64, 128, 256, 512),
        down_block_types=("DownBlock2D",) * 4, up_block_types=("UpBlock2D",) * 4), image(128), lambda: torch.zeros(2))
    for size in (256, 512):
        run(f"vae_{size}", lambda: d.AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2,
            latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4), image(size))


class UNet(nn.Module):
    """The U-Net of Ronneberger and others, with batch norm and transposed convolutions; 2d or 3d."""

    def __init__(self, dims, channels, width, depth=4):
        super().__init__()
        conv, norm, up = ((nn.Conv2d, nn.BatchNorm2d, nn.ConvTranspose2d) if dims == 2 else
                          (nn.Conv3d, nn.BatchNorm3d, nn.ConvTranspose3d))
        pool = nn.MaxPool2d if dims == 2 else nn.MaxPool3d
        double = lambda i, o: nn.Sequential(conv(i, o, 3, padding=1), norm(o), nn.ReLU(),
                                            conv(o, o, 3, padding=1), norm(o), nn.ReLU())
        sizes = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(double(i, o) for i, o in zip([channels] + sizes[:-1], sizes))
        self.up = nn.ModuleList(up(o, i, 2, stride=2) for i, o in zip(sizes[:-1], sizes[1:]))
        self.join = nn.ModuleList(double(o, i) for i, o in zip(sizes[:-1], sizes[1:]))
        self.pool, self.head = pool(2), conv(width, 3, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if not i else self.pool(x))
            kept.append(x)
        for up, join, skip in reversed(list(zip(self.up, self.join, kept[:-1]))):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


def own_models():
    run("unet2d_256", lambda: UNet(2, 1, 64), image(256, 1))
    run("unet3d_64", lambda: UNet(3, 1, 16, 3), lambda: torch.empty(2, 1, 64, 64, 64))
    run("dcgan_g", lambda: nn.Sequential(
        nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU(),
        nn.ConvTranspose2d(512, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
        nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
        nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False)), lambda: torch.empty(2, 100, 1, 1))
    run("dcgan_d", lambda: nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128),
        nn.Conv2d(128, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.Conv2d(256, 512, 4, 2, 1, bias=False),
        nn.BatchNorm2d(512), nn.Conv2d(512, 1, 4, 1, 0, bias=False)), image(64))
    run("lenet", lambda: nn.Sequential(nn.Conv2d(1, 32, 3, 1), nn.Conv2d(32, 64, 3, 1)), image(28, 1))
    for name, mels, width in (("whisper_small", 80, 768), ("whisper_large", 128, 1280)):
        run(name, lambda: nn.Sequential(nn.Conv1d(mels, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)),
            lambda: torch.empty(2, mels, 3000))
    run("wavenet", lambda: nn.Sequential(*[nn.Conv1d(64, 128 if i % 2 else 64, 2, dilation=2 ** (i // 2))
        if not i % 2 else nn.Conv1d(64, 64, 1) for i in range(16)]), lambda: torch.empty(2, 64, 8000))
    run("tcn", lambda: nn.Sequential(*[nn.Conv1d(128, 128, 3, padding=2 ** i, dilation=2 ** i) for i in range(6)]),
        lambda: torch.empty(2, 128, 1000))
    run("hifigan", lambda: nn.Sequential(nn.Conv1d(80, 512, 7, 1, 3), nn.ConvTranspose1d(512, 256, 16, 8, 4),
        nn.ConvTranspose1d(256, 128, 16, 8, 4), nn.ConvTranspose1d(128, 64, 4, 2, 1),
        nn.ConvTranspose1d(64, 32, 4, 2, 1), nn.Conv1d(32, 1, 7, 1, 3)), lambda: torch.empty(2, 80, 100))


if __name__ == "__main__":
    own_models()
    torchvision_models()
    transformer_models()
    diffusion_models()
    timm_models()
    print(f"# made by measure/cudnn_shapes.py, torch {torch.__version__}")
    for (kind, key), names in sorted(rows.items()):
        names = sorted(names)
        print("\t".join((kind, "+".join(names[:3]) + ("+" if len(names) > 3 else "")) + key))
