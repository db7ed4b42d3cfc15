"""timm's CaiT with pictures of 384: SGD with Nesterov momentum, bfloat16 autocast, batches of 24, gradients clipped by their norm, an evaluation in between."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1407)
model = timm.create_model("cait_xs24_384", pretrained=False, num_classes=100, drop_path_rate=0.05).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
for step in range(5):
    model.train()
    x, y = torch.randn(24, 3, 384, 384).cuda(), torch.randint(0, 100, (24,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), norm.item())
    if step == 2:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            print("right", (model(torch.randn(24, 3, 384, 384).cuda()).argmax(1) == y).sum().item())
