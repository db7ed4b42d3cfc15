"""Transfer with torchvision's MobileNetV3: a new head on a frozen body, then all layers with two rates, float32, gradients clipped."""
import torch
import torchvision
from torch import nn

torch.manual_seed(802)
model = torchvision.models.mobilenet_v3_large(weights=None)
model.classifier[3] = nn.Linear(1280, 37)
model = model.cuda()
loss_of = nn.CrossEntropyLoss()


def batches(count, size):
    for _ in range(count):
        yield torch.rand(size, 3, 224, 224), torch.randint(0, 37, (size,))


def epoch(optimizer, count, size):
    for x, y in batches(count, size):
        loss = loss_of(model(x.to("cuda")), y.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        optimizer.step()
    print(loss.item())


for p in model.features.parameters():
    p.requires_grad = False
model.train()
epoch(torch.optim.Adam(model.classifier.parameters(), 1e-3), 4, 96)
for p in model.features.parameters():
    p.requires_grad = True
epoch(torch.optim.AdamW([{"params": model.features.parameters(), "lr": 1e-5}, {"params": model.classifier.parameters(), "lr": 1e-4}]), 4, 64)
model.eval()
with torch.no_grad():
    print(sum((model(x.cuda()).argmax(1).cpu() == y).sum().item() for x, y in batches(2, 128)))
