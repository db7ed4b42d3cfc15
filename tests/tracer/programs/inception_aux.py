"""Inception v3 of torchvision with its second head, float32, Adam with exponential rates, weights of classes, pictures in batches of different sizes, features for a Fréchet distance."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1207)
model = torchvision.models.inception_v3(weights=None, num_classes=25, aux_logits=True, init_weights=False).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
weight = torch.linspace(0.5, 2, 25).cuda()
for step in range(8):
    n = (48, 48, 48, 21)[step % 4]
    x, y = torch.randn(n, 3, 299, 299).cuda(), torch.randint(0, 25, (n,)).cuda()
    out, aux = model(x)
    loss = F.cross_entropy(out, y, weight=weight) + 0.4 * F.cross_entropy(aux, y, weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        rate.step()
    print(step, loss.item())
model.eval()
model.fc = torch.nn.Identity()
moments = []
with torch.no_grad():
    for part in range(2):
        f = torch.cat([model(torch.rand(50, 3, 299, 299, device="cuda")) for _ in range(3)]).double()
        moments.append((f.mean(0), torch.cov(f.T)))
    (a, ca), (b, cb) = moments
    print(((a - b) ** 2).sum().item() + (ca.trace() + cb.trace()).item())
