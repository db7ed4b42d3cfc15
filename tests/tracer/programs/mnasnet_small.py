"""torchvision's smallest MNASNet on large pictures: AdamW, bfloat16 autocast, batches of 8 to 16, gradients clipped by their norm, an evaluation with a larger batch at the end."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1502)
model = torchvision.models.mnasnet0_5(weights=None, num_classes=120, dropout=0.1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1e-4)
model.train()
for step, batch in enumerate((8, 12, 16, 10, 14, 16, 9, 13)):
    x, y = torch.randn(batch, 3, 448, 448).cuda(), torch.randint(0, 120, (batch,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    print(step, loss.item(), norm.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for _ in range(3):
        x, y = torch.randn(64, 3, 448, 448).cuda(), torch.randint(0, 120, (64,)).cuda()
        print("right", (model(x).argmax(1) == y).float().mean().item())
