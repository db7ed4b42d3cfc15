"""SE-ResNeXt of timm as its own training script runs it: channels_last, float16 with a scaler, mixup, RMSprop, timm's average of the weights, evaluation of both."""
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

torch.manual_seed(1201)
model = timm.create_model("seresnext50_32x4d", pretrained=False, num_classes=120, drop_rate=0.1).cuda().to(memory_format=torch.channels_last)
optimizer = create_optimizer_v2(model, opt="rmsproptf", lr=1e-3, weight_decay=1e-5)
average = ModelEmaV3(model, decay=0.99)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
mix = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=120)
criterion = SoftTargetCrossEntropy()
model.train()
for step in range(8):
    x, y = torch.randn(40, 3, 224, 224).cuda(non_blocking=True), torch.randint(0, 120, (40,)).cuda(non_blocking=True)
    x, y = mix(x, y)
    x = x.contiguous(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.float16):
        loss = criterion(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    average.update(model)
    print(step, loss.item())
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for network in (model.eval(), average.module.eval()):
        x = torch.randn(96, 3, 256, 256).cuda().contiguous(memory_format=torch.channels_last)
        print(network(x).argmax(1).float().mean().item())
