"""timm's aligned Xception with activations first: NAdam, float32, batches of 32, gradients clipped by their norm, an evaluation in between."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1507)
model = timm.create_model("xception65p", pretrained=False, num_classes=100).cuda()
optimizer = torch.optim.NAdam(model.parameters(), 1e-3, weight_decay=1e-5)
for step in range(4):
    model.train()
    x, y = torch.randn(32, 3, 224, 224).cuda(), torch.randint(0, 100, (32,)).cuda()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), norm.item())
    if step == 1:
        model.eval()
        with torch.no_grad():
            right = 0
            for _ in range(2):
                x, y = torch.randn(32, 3, 224, 224).cuda(), torch.randint(0, 100, (32,)).cuda()
                right += (model(x).argmax(1) == y).sum()
        print("right", right.item())
