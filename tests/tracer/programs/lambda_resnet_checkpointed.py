"""timm's ResNet with lambda layers, its convolutions over pictures in channels last, with checkpointing: Adam, float32, batches of 8, an evaluation with a larger batch at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1603)
model = timm.create_model("lambda_resnet50ts", pretrained=False, num_classes=120).cuda()
for layer in model.modules():
    if isinstance(layer, torch.nn.Conv2d):  # those of lambdas are Conv3d
        layer.to(memory_format=torch.channels_last)
model.set_grad_checkpointing(True)
optimizer = torch.optim.Adam(model.parameters(), 5e-4)
model.train()
for step in range(5):
    x = torch.randn(8, 3, 256, 256).to("cuda", memory_format=torch.channels_last)
    loss = F.cross_entropy(model(x), torch.randint(0, 120, (8,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        x, y = torch.randn(24, 3, 256, 256).to("cuda", memory_format=torch.channels_last), torch.randint(0, 120, (24,)).cuda()
        print("right", (model(x).argmax(1) == y).float().mean().item())
