"""ConvNeXt V2 of timm, fine-tuned: a rate for each layer, fused AdamW, bfloat16 autocast, channels_last, erased patches, labels of two tasks, flipped copies in the evaluation."""
import timm
import torch
import torch.nn.functional as F
from timm.data.random_erasing import RandomErasing
from timm.optim import param_groups_layer_decay
from torch import nn

torch.manual_seed(1204)
body = timm.create_model("convnextv2_nano", pretrained=False, num_classes=0, drop_path_rate=0.1)
model = nn.ModuleDict({"body": body, "kind": nn.Linear(640, 90), "tags": nn.Linear(640, 30)}).cuda().to(memory_format=torch.channels_last)
groups = param_groups_layer_decay(body, weight_decay=0.05, layer_decay=0.8)
for g in groups:
    g["lr"] = 2e-4 * g.pop("lr_scale")
groups.append({"params": [*model["kind"].parameters(), *model["tags"].parameters()], "lr": 1e-3})
optimizer = torch.optim.AdamW(groups, fused=True)
erase = RandomErasing(probability=0.5, mode="pixel", device="cuda")
for step in range(7):
    x = erase(torch.randn(64, 3, 224, 224).cuda()).contiguous(memory_format=torch.channels_last)
    y, tags = torch.randint(0, 90, (64,)).cuda(), torch.randint(0, 2, (64, 30)).float().cuda()
    with torch.autocast("cuda", torch.bfloat16):
        f = model["body"](x)
        loss = F.cross_entropy(model["kind"](f), y, label_smoothing=0.1) + F.binary_cross_entropy_with_logits(model["tags"](f), tags)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for n in (128, 128, 77):
        x = torch.randn(n, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
        p = (model["kind"](model["body"](x)).softmax(1) + model["kind"](model["body"](x.flip(3))).softmax(1)) / 2
        print(p.max(1).values.mean().item())
