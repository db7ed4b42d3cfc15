"""timm's Hiera in channels last: SGD with Nesterov momentum, bfloat16 autocast, two parts of 8 to 16 pictures a step, an evaluation with a larger batch at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1607)
model = timm.create_model("hiera_base_224", pretrained=False, num_classes=100, drop_path_rate=0.1).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True, weight_decay=1e-4)
model.train()
for step, batches in enumerate(((8, 16), (12, 10), (15, 9), (16, 14), (11, 13))):
    for batch in batches:
        x = torch.randn(batch, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        y = torch.randint(0, 100, (batch,)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(x), y) * batch / sum(batches)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for _ in range(2):
        x = torch.randn(64, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        print(model(x).argmax(1).float().mean().item())
