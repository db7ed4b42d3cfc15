"""MViT v2 of torchvision on clips: float16 with a scaler, the first stage frozen, AdamW, several views of a clip in the evaluation."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(1206)
model = torchvision.models.video.mvit_v2_s(weights=None, stochastic_depth_prob=0.1)
model.head[1] = nn.Linear(768, 40)
model.cuda()
for p in [*model.conv_proj.parameters(), *model.blocks[0].parameters()]:
    p.requires_grad = False
own = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(own, 1e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
for step in range(6):
    x, y = torch.randn(6, 3, 16, 224, 224).cuda(), torch.randint(0, 40, (6,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(own, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for clip in range(2):
        views = torch.randn(5, 3, 16, 224, 224).cuda()
        print(model(views).softmax(1).mean(0).argmax().item())
