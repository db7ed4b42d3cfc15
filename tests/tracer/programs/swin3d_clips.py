"""torchvision's Swin3D (tiny) with bfloat16 weights: Adadelta, two parts of 8 clips a step, gradients kept as zeros."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1404)
model = torchvision.models.video.swin3d_t(weights=None, num_classes=100).to("cuda", torch.bfloat16)
optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5, rho=0.9)
model.train()
for step in range(4):
    optimizer.zero_grad(set_to_none=False)
    total = 0.0
    for part in range(2):
        x = torch.randn(8, 3, 8, 112, 112).to("cuda", torch.bfloat16)
        y = torch.randint(0, 100, (8,)).cuda()
        loss = F.cross_entropy(model(x).float(), y, label_smoothing=0.1) / 2
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(step, total)
