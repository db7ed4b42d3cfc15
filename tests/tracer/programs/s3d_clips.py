"""torchvision's S3D on clips of 16 frames: RAdam, float32, batches of 12, an evaluation in between."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1403)
model = torchvision.models.video.s3d(weights=None, num_classes=80, dropout=0.2).cuda()
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for step in range(6):
    model.train()
    x, y = torch.randn(12, 3, 16, 224, 224).cuda(), torch.randint(0, 80, (12,)).cuda()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
    if step in (2, 5):
        model.eval()
        with torch.no_grad():
            scores = [model(torch.randn(12, 3, 16, 224, 224).cuda()).softmax(1) for _ in range(2)]
        print("sure", torch.cat(scores).amax(1).mean().item())
