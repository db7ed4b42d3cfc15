"""HRNet of timm as a network for landmarks: features of four resolutions are brought together, heat maps against Gaussians, online hard points, AdamW in bfloat16, soft argmax at the end."""
import timm
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1010)
POINTS = 17
body = timm.create_model("hrnet_w18_small", pretrained=False, features_only=True, feature_location="").cuda()
widths = body.feature_info.channels()
head = nn.Sequential(nn.Conv2d(sum(widths[1:]), 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, POINTS, 1)).cuda()
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], 1e-3)


def maps(x):
    features = body(x)[1:]
    side = features[0].shape[-2:]
    return head(torch.cat([features[0]] + [F.interpolate(f, side, mode="bilinear", align_corners=False) for f in features[1:]], 1))


def gaussians(points, height, width):
    rows, columns = torch.arange(height, device="cuda").float(), torch.arange(width, device="cuda").float()
    d = (rows[None, None, :, None] - points[..., 1, None, None]) ** 2 + (columns[None, None, None] - points[..., 0, None, None]) ** 2
    return torch.exp(-d / 8)


for step in range(6):
    x = torch.randn(16, 3, 256, 192, device="cuda")
    points = torch.rand(16, POINTS, 2, device="cuda") * torch.tensor([48.0, 64.0], device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        out = maps(x)
    error = (out.float() - gaussians(points, *out.shape[-2:])).pow(2).mean((2, 3))
    loss = error.mean() + error.topk(8, dim=1).values.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
body.eval()
head.eval()
with torch.inference_mode():
    for batch, (h, w) in ((16, (256, 192)), (8, (384, 288)), (32, (256, 192))):
        heat = maps(torch.randn(batch, 3, h, w, device="cuda")).flatten(2).softmax(-1)
        print(h, w, (heat * torch.arange(heat.shape[-1], device="cuda")).sum(-1).mean().item())
