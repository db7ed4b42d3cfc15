"""Depth Anything of transformers (DINOv2 with a DPT neck): distances in metres, a loss of logarithms that ignores holes, two rates, bfloat16 autocast, then pictures of another shape with flipped copies."""
import torch
import torch.nn.functional as F
from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

torch.manual_seed(1214)
tower = Dinov2Config(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, image_size=518, patch_size=14, out_indices=[3, 6, 9, 12], apply_layernorm=True, reshape_hidden_states=False)
model = DepthAnythingForDepthEstimation(DepthAnythingConfig(backbone_config=tower, reassemble_hidden_size=384, neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64, head_hidden_size=32, depth_estimation_type="metric", max_depth=20)).cuda()
slow, fast = list(model.backbone.parameters()), [*model.neck.parameters(), *model.head.parameters()]
optimizer = torch.optim.AdamW([{"params": slow, "lr": 5e-6}, {"params": fast, "lr": 5e-5}], weight_decay=0.01)
model.train()
for step in range(6):
    x = torch.randn(6, 3, 280, 364).cuda()
    depth = torch.rand(6, 280, 364) * 18 + 1
    depth[:, :30] = 0
    depth = depth.cuda()
    with torch.autocast("cuda", torch.bfloat16):
        guess = model(pixel_values=x).predicted_depth
    valid = depth > 0.1
    error = torch.where(valid, depth.clamp(min=0.1).log() - guess.float().clamp(min=1e-3).log(), 0.0)
    n = valid.sum()
    loss = torch.sqrt((error ** 2).sum() / n - 0.5 * (error.sum() / n) ** 2 + 1e-6)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    for h, w in ((518, 518), (378, 672)):
        x = torch.randn(2, 3, h, w, device="cuda")
        d = (model(pixel_values=x).predicted_depth + model(pixel_values=x.flip(3)).predicted_depth.flip(2)) / 2
        print(F.interpolate(d[:, None].float(), size=(480, 640), mode="bilinear").mean().item())
