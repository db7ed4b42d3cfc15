"""timm's small ViTamin, compiled, in channels last and with checkpointing: Adagrad, products of float32 in TF32, batches of 24, gradients kept as zeros, an evaluation with a larger batch at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1608)
torch.set_float32_matmul_precision("high")
model = timm.create_model("vitamin_small_224", pretrained=False, num_classes=200).to("cuda", memory_format=torch.channels_last)
model.set_grad_checkpointing(True)
fast = torch.compile(model)
optimizer = torch.optim.Adagrad(model.parameters(), lr=2e-3)
model.train()
for step in range(5):
    x = torch.randn(24, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
    y = torch.randint(0, 200, (24,)).cuda()
    optimizer.zero_grad(set_to_none=False)
    loss = F.cross_entropy(fast(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        x = torch.randn(48, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        print(fast(x).argmax(1).float().mean().item())
