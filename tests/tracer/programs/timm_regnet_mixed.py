"""timm's RegNetY-008 at two sizes: float16 with a scaler, RMSprop as timm has it, exponential average of timm, evaluation of the average."""
import timm
import torch
from timm.optim import RMSpropTF
from timm.utils import ModelEmaV2

torch.manual_seed(903)
model = timm.create_model("regnety_008", num_classes=120).cuda()
ema = ModelEmaV2(model, decay=0.999)
optimizer = RMSpropTF(model.parameters(), lr=0.01, alpha=0.9, momentum=0.9, eps=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
for step in range(7):
    side = 176 if step < 4 else 208
    x, y = torch.randn(64, 3, side, side).cuda(), torch.randint(0, 120, (64,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ema.update(model)
    print(step, side, loss.item())
ema.module.eval()
with torch.no_grad():
    print(sum(ema.module(torch.randn(100, 3, 224, 224).cuda()).argmax(1).float().mean().item() for _ in range(2)))
