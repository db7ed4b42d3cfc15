"""Clouds of points with a graph of neighbours that is made anew in each layer (DGCNN): distances, the nearest, features of edges, the largest of each, SGD with a cosine."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1314)


def edges(x, k):
    """Pairs of a point and its neighbours: B x 2C x N x k."""
    b, c, n = x.shape
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    square = (x ** 2).sum(1, keepdim=True)
    near = (-square - inner - square.transpose(2, 1)).topk(k, dim=-1)[1]
    at = (near + torch.arange(b, device=x.device).view(-1, 1, 1) * n).view(-1)
    flat = x.transpose(2, 1).contiguous()
    other = flat.view(b * n, c)[at, :].view(b, n, k, c)
    own = flat.view(b, n, 1, c).repeat(1, 1, k, 1)
    return torch.cat((other - own, own), dim=3).permute(0, 3, 1, 2).contiguous()


class Net(nn.Module):
    def __init__(self, k=20, classes=40):
        super().__init__()
        self.k, sizes = k, (3, 64, 64, 128, 256)
        self.layers = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2)) for i, o in zip(sizes, sizes[1:]))
        self.last = nn.Sequential(nn.Conv1d(512, 1024, 1, bias=False), nn.BatchNorm1d(1024), nn.LeakyReLU(0.2))
        self.head = nn.Sequential(nn.Linear(2048, 512, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(512, classes))

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = layer(edges(x, self.k)).max(dim=-1)[0]
            found.append(x)
        x = self.last(torch.cat(found, 1))
        return self.head(torch.cat((F.adaptive_max_pool1d(x, 1).flatten(1), F.adaptive_avg_pool1d(x, 1).flatten(1)), 1))


net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=1e-3)
for step in range(7):
    points = torch.randn(16, 1024, 3)
    points = (points * (torch.rand(16, 1, 3) + 0.5) + 0.2 * torch.rand(16, 1, 3)).cuda().permute(0, 2, 1)
    y = torch.randint(0, 40, (16,)).cuda()
    loss = F.cross_entropy(net(points), y, label_smoothing=0.2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rate.step()
    print(step, loss.item())
net.eval()
with torch.no_grad():
    votes = sum(F.softmax(net(torch.randn(16, 3, 1024).cuda()), 1) for _ in range(3))
    print(votes.argmax(1).float().mean().item())
