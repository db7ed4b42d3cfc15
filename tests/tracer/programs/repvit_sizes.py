"""timm's RepViT in channels last: SGD with Nesterov momentum, products of float32 in TF32, each epoch ends with a small batch, gradients clipped by their norm, an evaluation of other sizes at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1405)
torch.set_float32_matmul_precision("high")
model = timm.create_model("repvit_m1_5", pretrained=False, num_classes=150).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=2e-5)
model.train()
for epoch in range(2):
    for batch in (32, 32, 32, 11):
        x = torch.randn(batch, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        y = torch.randint(0, 150, (batch,)).cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    print(epoch, loss.item(), norm.item())
model.eval()
with torch.no_grad():
    for size in (192, 256, 320):
        x = torch.randn(32, 3, size, size).to("cuda", memory_format=torch.channels_last)
        print(size, model(x).argmax(1).float().mean().item())
