"""timm's FastViT with checkpointing: Adam, float32, batches of 12, gradients clipped by value, an evaluation in between."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1506)
model = timm.create_model("fastvit_sa24", pretrained=False, num_classes=150, drop_path_rate=0.1).cuda()
model.set_grad_checkpointing(True)
optimizer = torch.optim.Adam(model.parameters(), 5e-4)
for step in range(5):
    model.train()
    x, y = torch.randn(12, 3, 256, 256).cuda(), torch.randint(0, 150, (12,)).cuda()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(step, loss.item())
    if step % 2:
        model.eval()
        with torch.no_grad():
            x, y = torch.randn(12, 3, 256, 256).cuda(), torch.randint(0, 150, (12,)).cuda()
            print("right", (model(x).argmax(1) == y).sum().item())
