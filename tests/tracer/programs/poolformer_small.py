"""timm's PoolFormer: float32 with TF32 products, gradients accumulated over two batches, Nesterov Adam, two resolutions."""
import timm
import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(805)
model = timm.create_model("poolformer_s12", num_classes=200).cuda()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
criterion = torch.nn.CrossEntropyLoss()
for step, side in enumerate([160, 160, 160, 224, 224]):
    optimizer.zero_grad()
    for part in range(2):
        x = torch.randn(40, 3, side, side, device="cuda")
        y = torch.randint(0, 200, (40,), device="cuda")
        loss = criterion(model(x), y) / 2
        loss.backward()
    optimizer.step()
    print(step, side, loss.item())
model.eval()
with torch.inference_mode():
    for side in (224, 256):
        print(model(torch.randn(64, 3, side, side, device="cuda")).softmax(1).amax().item())
