"""A network of timm in channels_last and bf16 autocast within DataParallel, mixup, a moving average of timm."""
import timm
import timm.data
import timm.loss
import timm.utils
import torch

torch.manual_seed(41)
model = timm.create_model("efficientnet_b0", num_classes=200, drop_rate=0.2, drop_path_rate=0.1)
model = model.cuda().to(memory_format=torch.channels_last)
ema = timm.utils.ModelEmaV2(model, decay=0.999)
parallel = torch.nn.DataParallel(model)
mixup = timm.data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=200)
criterion = timm.loss.SoftTargetCrossEntropy()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-3, momentum=0.9)
for step in range(6):
    batch = 96 if step % 3 else 128
    x = torch.rand(batch, 3, 224, 224).cuda().contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 200, (batch,)).cuda()
    x, y = mixup(x, y)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(parallel(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    print(step, loss.item())
