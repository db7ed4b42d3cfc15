"""MaxViT of timm: windows and grids, stochastic depth, float16 with a scaler, attention written out, stages that are checkpointed, a layer-wise decay of the rate."""
import timm
import torch
import torch.nn.functional as F
from timm.optim import create_optimizer_v2

torch.manual_seed(1105)
timm.layers.set_fused_attn(False)  # the fused one has no gradient of the bias here
model = timm.create_model("maxvit_nano_rw_256", pretrained=False, num_classes=80, drop_path_rate=0.2).cuda()
model.set_grad_checkpointing(True)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05, layer_decay=0.8)
scaler = torch.amp.GradScaler("cuda", init_scale=512.0)
for step in range(6):
    x, y = torch.randn(40, 3, 256, 256).cuda(), torch.randint(0, 80, (40,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, loss.item(), norm.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    print([model(torch.randn(n, 3, 256, 256, device="cuda")).float().softmax(1).amax().item() for n in (64, 30)])
