"""torchvision's VGG-16 with batch norm, float32: all layers trained with two rates, accumulation over three batches, then features of the last layer kept."""
import torch
import torchvision

torch.manual_seed(902)
net = torchvision.models.vgg16_bn(weights=None, num_classes=50).cuda()
optimizer = torch.optim.SGD([{"params": net.features.parameters(), "lr": 1e-4}, {"params": net.classifier.parameters(), "lr": 1e-3}], momentum=0.9)
for step in range(4):
    for part in range(3):
        x, y = torch.rand(24, 3, 160, 160).cuda(), torch.randint(0, 50, (24,)).cuda()
        loss = torch.nn.functional.cross_entropy(net(x), y) / 3
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
net.eval()
kept = []
net.classifier[-1].register_forward_hook(lambda m, inputs, output: kept.append(inputs[0].cpu()))
with torch.no_grad():
    for _ in range(3):
        net(torch.rand(48, 3, 160, 160).cuda())
print(torch.cat(kept).shape)
