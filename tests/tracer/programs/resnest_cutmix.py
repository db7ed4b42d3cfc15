"""ResNeSt of timm with CutMix: channels last, bfloat16, SGD with Nesterov momentum and no decay of biases, a cosine rate, two crops in the evaluation."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1301)
model = timm.create_model("resnest50d", pretrained=False, num_classes=200, drop_rate=0.1).to("cuda", memory_format=torch.channels_last)
decay, plain = [], []
for name, p in model.named_parameters():
    (plain if p.ndim == 1 else decay).append(p)
optimizer = torch.optim.SGD([{"params": decay, "weight_decay": 5e-5}, {"params": plain, "weight_decay": 0.0}], 0.1, momentum=0.9, nesterov=True)
rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for step in range(6):
    x, y = torch.randn(32, 3, 224, 224).to("cuda", memory_format=torch.channels_last), torch.randint(0, 200, (32,)).cuda()
    other = torch.randperm(32, device="cuda")
    top, left, size = 16 * step, 8 * step, 96 + 8 * step
    x[:, :, top:top + size, left:left + size] = x[other, :, top:top + size, left:left + size]
    share = 1 - size * size / 224 ** 2
    with torch.autocast("cuda", torch.bfloat16):
        out = model(x)
        loss = share * F.cross_entropy(out, y) + (1 - share) * F.cross_entropy(out, y[other])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    rate.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    x = torch.randn(48, 3, 256, 256).to("cuda", memory_format=torch.channels_last)
    print((model(x[:, :, :224, :224]) + model(x[:, :, 32:, 32:])).argmax(1).float().mean().item())
