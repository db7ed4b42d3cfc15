"""timm's smallest StarNet: fused AdamW, float16 with a scaler, batches of 16, gradients clipped by value, an evaluation of other sizes at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1505)
model = timm.create_model("starnet_s150", pretrained=False, num_classes=200).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.02, fused=True)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(6):
    x, y = torch.randn(16, 3, 352, 352).cuda(), torch.randint(0, 200, (16,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for size in (224, 288, 416):
        print(size, model(torch.randn(16, 3, size, size).cuda()).argmax(1).float().mean().item())
