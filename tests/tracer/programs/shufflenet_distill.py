"""A ShuffleNet of torchvision learns from a frozen ResNeXt: temperature, hints from a middle layer through a hook, RMSprop, then post-training statistics of activations."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(1009)
teacher = torchvision.models.resnext50_32x4d(num_classes=120).cuda().eval().requires_grad_(False)
student = torchvision.models.shufflenet_v2_x1_5(num_classes=120).cuda()
bridge = nn.Conv2d(352, 1024, 1).cuda()
hints = {}
teacher.layer3.register_forward_hook(lambda m, i, o: hints.__setitem__("teacher", o))
student.stage3.register_forward_hook(lambda m, i, o: hints.__setitem__("student", o))
optimizer = torch.optim.RMSprop([*student.parameters(), *bridge.parameters()], 1e-3, momentum=0.9)
for step in range(7):
    x, y = torch.randn(40, 3, 224, 224, device="cuda"), torch.randint(0, 120, (40,), device="cuda")
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        soft = teacher(x)
    out = student(x)
    loss = F.cross_entropy(out, y) + 16 * F.kl_div((out / 4).log_softmax(-1), (soft.float() / 4).softmax(-1), reduction="batchmean")
    loss = loss + 0.1 * F.mse_loss(bridge(hints["student"]), hints["teacher"].float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hints.clear()
    print(step, loss.item())
student.eval()
ranges = {}
for name, module in student.named_modules():
    if isinstance(module, nn.Conv2d):
        module.register_forward_hook(lambda m, i, o, name=name: ranges.__setitem__(name, torch.stack([o.amin(), o.amax(), o.float().pow(2).mean()])))
with torch.no_grad():
    for side in (224, 256, 192):
        student(torch.randn(64, 3, side, side, device="cuda"))
        print(side, len(ranges), torch.stack(list(ranges.values())).mean(0).tolist())
