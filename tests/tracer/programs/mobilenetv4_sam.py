"""MobileNetV4 of timm with sharpness-aware minimization: each step goes up along the gradient and back, batch statistics are kept in the first pass alone, float32."""
import timm
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1107)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for g in grads]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["old"] = p.clone()
                    p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p]["old"])
        self.base.step()
        self.zero_grad()


def batch_statistics(model, momentum):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = momentum


model = timm.create_model("mobilenetv4_conv_small", pretrained=False, num_classes=200).cuda()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(6):
    x, y = torch.randn(96, 3, 224, 224).cuda(), torch.randint(0, 200, (96,)).cuda()
    batch_statistics(model, 0.1)
    loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    loss.backward()
    optimizer.climb()
    batch_statistics(model, 0.0)
    F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    print(sum(model(torch.randn(128, 3, 256, 256, device="cuda")).argmax(1).float().mean().item() for _ in range(2)))
