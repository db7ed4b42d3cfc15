"""ConvNeXt-Tiny from torchvision, channels last, bfloat16 autocast, AdamW, gradients of two batches accumulated."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1)
device = "cuda"
accumulate = 2
model = torchvision.models.convnext_tiny(num_classes=1000).to(device, memory_format=torch.channels_last)
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}], lr=4e-4)
ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))

for step in range(16):
    size = 192 if step % 4 < 2 else 224
    x = torch.rand(64, 3, size, size, device=device).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (64,), device=device)
    lam = 0.3
    x = lam * x + (1 - lam) * x.flip(0)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(x)
        loss = lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y.flip(0))
    (loss / accumulate).backward()
    if step % accumulate == accumulate - 1:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        ema.update_parameters(model)
        print(step, loss.item())
