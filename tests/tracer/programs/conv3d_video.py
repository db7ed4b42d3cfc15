"""A video classifier of torchvision with 3D convolutions, mixed precision with a scaler, clips of two lengths."""
import torch
import torchvision

torch.manual_seed(27)
model = torchvision.models.video.r2plus1d_18(weights=None, num_classes=101).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scaler = torch.amp.GradScaler("cuda")
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(6):
    frames = 16 if step % 3 else 8
    clip = torch.rand(8, frames, 3, 128, 128).cuda(non_blocking=True).permute(0, 2, 1, 3, 4)
    label = torch.randint(0, 101, (8,)).cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(clip), label)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
    scores = [model(torch.rand(2, 3, 32, 128, 128, device="cuda")).softmax(1) for _ in range(3)]
print(torch.stack(scores).mean(0).argmax(1).tolist())
