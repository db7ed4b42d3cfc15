"""timm's lighter CoaT in channels last: AdamW tensor by tensor, float16 with a scaler, batches of 16, gradients clipped by value, averaged weights are evaluated."""
import timm
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1604)
model = timm.create_model("coat_lite_small", pretrained=False, num_classes=100, drop_path_rate=0.1).to("cuda", memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=0.05, foreach=False)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(5):
    x = torch.randn(16, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
    y = torch.randint(0, 100, (16,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    average.update_parameters(model)
    print(step, loss.item())
average.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for _ in range(3):
        x = torch.randn(16, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        print(average(x).softmax(1).amax(1).mean().item())
