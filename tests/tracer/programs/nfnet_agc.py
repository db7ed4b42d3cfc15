"""A network without normalization (timm's NFNet-L0): standardized weights, adaptive clipping of gradients, SGD with Nesterov's momentum, channels_last in bfloat16."""
import timm
import torch
import torch.nn.functional as F
from timm.utils import adaptive_clip_grad

torch.manual_seed(1106)
model = timm.create_model("nfnet_l0", pretrained=False, num_classes=120, drop_rate=0.2).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=2e-5)
for step in range(6):
    x = torch.randn(32, 3, 224, 224).to(memory_format=torch.channels_last).cuda()
    y = torch.randint(0, 120, (32,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        out = model(x)
    loss = F.binary_cross_entropy_with_logits(out.float(), F.one_hot(y, 120).float())
    optimizer.zero_grad()
    loss.backward()
    adaptive_clip_grad(model.parameters(), 0.01)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for side in (224, 288):
        print(side, model(torch.randn(40, 3, side, side, device="cuda").to(memory_format=torch.channels_last)).argmax(1).float().mean().item())
