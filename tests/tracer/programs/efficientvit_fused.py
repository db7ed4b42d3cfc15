"""EfficientViT of timm (MIT's, attention that is linear) in float32: a fused AdamW, two sizes of pictures, gradients accumulated over two batches, top-5 at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1104)
model = timm.create_model("efficientvit_b1", pretrained=False, num_classes=250).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.02, fused=True)
rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=12)
for step in range(6):
    side = 224 if step < 4 else 288
    optimizer.zero_grad()
    for part in range(2):
        x, y = torch.randn(28, 3, side, side, device="cuda"), torch.randint(0, 250, (28,), device="cuda")
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    rate.step()
    print(step, side, loss.item())
model.eval()
with torch.inference_mode():
    for side in (224, 288, 256):
        y = torch.randint(0, 250, (50,), device="cuda")
        top = model(torch.randn(50, 3, side, side, device="cuda")).topk(5).indices
        print(side, (top == y[:, None]).any(1).float().mean().item())
