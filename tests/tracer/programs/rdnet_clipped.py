"""timm's RDNet, a DenseNet of today: AdamW, float32, batches of 16, gradients clipped by value."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1605)
model = timm.create_model("rdnet_small", pretrained=False, num_classes=250, drop_path_rate=0.2).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 4e-4, weight_decay=0.05)
model.train()
for step in range(5):
    x, y = torch.randn(16, 3, 224, 224).cuda(), torch.randint(0, 250, (16,)).cuda()
    loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(step, loss.item())
