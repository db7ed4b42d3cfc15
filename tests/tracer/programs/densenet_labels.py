"""torchvision's DenseNet-121 with many labels a picture: bfloat16 autocast, gray pictures, weights for rare labels, plateau schedule."""
import torch
import torchvision
from torch import nn

torch.manual_seed(803)
net = torchvision.models.densenet121(weights=None, num_classes=14)
net.features.conv0 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
net.cuda()
rare = torch.rand(14).mul(9).add(1).cuda()
criterion = nn.BCEWithLogitsLoss(pos_weight=rare)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, amsgrad=True)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
for epoch in range(2):
    net.train()
    for size in (32, 32, 32, 17):
        x, y = torch.randn(size, 1, 224, 224), (torch.rand(size, 14) < 0.1).float()
        x, y = x.cuda(), y.cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    total, outputs = 0.0, []
    with torch.inference_mode():
        for size in (48, 20):
            x, y = torch.randn(size, 1, 224, 224).cuda(), (torch.rand(size, 14) < 0.1).float().cuda()
            out = net(x)
            total += criterion(out, y).item()
            outputs.append(out.sigmoid().cpu())
    schedule.step(total)
    print(epoch, loss.item(), torch.cat(outputs).mean().item())
