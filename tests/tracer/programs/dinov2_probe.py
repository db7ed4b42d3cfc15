"""A linear probe on a frozen DINOv2 of timm (patches of 14, pictures of several sizes): tokens of four layers joined, 12 heads with rates of their own, then nearest neighbours of a bank."""
import timm
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1203)
backbone = timm.create_model("vit_small_patch14_reg4_dinov2", pretrained=False, num_classes=0, dynamic_img_size=True).cuda().eval().requires_grad_(False)
heads = nn.ModuleList(nn.Linear(384 * 5, 300) for _ in range(12)).cuda()
optimizer = torch.optim.SGD([{"params": h.parameters(), "lr": 0.01 * 1.5 ** i} for i, h in enumerate(heads)], momentum=0.9)
rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)


def features(x):
    with torch.inference_mode(), torch.autocast("cuda", torch.float16):
        layers = backbone.get_intermediate_layers(x, n=4, return_prefix_tokens=True, norm=True)
    return torch.cat([p[:, 0] for _, p in layers] + [layers[-1][0].mean(1)], 1).float().clone()


for step in range(8):
    side = (224, 280, 224, 322)[step % 4]
    x, y = torch.randn(128, 3, side, side).cuda(), torch.randint(0, 300, (128,)).cuda()
    f = features(x)
    losses = [F.cross_entropy(h(f), y) for h in heads]
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
    rate.step()
    print(step, min(v.item() for v in losses))
bank = torch.cat([F.normalize(features(torch.randn(256, 3, 224, 224, device="cuda"))) for _ in range(6)])
labels = torch.randint(0, 300, (len(bank),), device="cuda")
with torch.no_grad():
    for _ in range(2):
        q = F.normalize(features(torch.randn(128, 3, 224, 224, device="cuda")))
        near, index = (q @ bank.T).topk(20)
        votes = torch.zeros(len(q), 300, device="cuda").scatter_add_(1, labels[index], (near / 0.07).exp())
        print(votes.argmax(1).float().mean().item())
