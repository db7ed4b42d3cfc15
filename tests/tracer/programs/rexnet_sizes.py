"""timm's ReXNet: Adam, float16 with a scaler, four parts of 12 a step, gradients kept as zeros, an evaluation of other sizes at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1408)
model = timm.create_model("rexnet_150", pretrained=False, num_classes=90).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(3):
    optimizer.zero_grad(set_to_none=False)
    for part in range(4):
        x, y = torch.randn(12, 3, 224, 224).cuda(), torch.randint(0, 90, (12,)).cuda()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(x), y) / 4
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, 4 * loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for size in (160, 224, 288):
        print(size, model(torch.randn(12, 3, size, size).cuda()).argmax(1).float().mean().item())
