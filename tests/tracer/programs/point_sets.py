"""Point clouds: farthest points in a loop, neighbours by distances, edge convolution, parts of each cloud."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(65)


def farthest(points, count):
    batch, n, _ = points.shape
    picked = torch.zeros(batch, count, dtype=torch.long, device=points.device)
    nearest = torch.full((batch, n), 1e10, device=points.device)
    last = torch.randint(0, n, (batch,), device=points.device)
    rows = torch.arange(batch, device=points.device)
    for i in range(count):
        picked[:, i] = last
        nearest = torch.minimum(nearest, ((points - points[rows, last].unsqueeze(1)) ** 2).sum(-1))
        last = nearest.argmax(-1)
    return picked


class Edge(nn.Module):
    def __init__(self, inside, outside, k):
        super().__init__()
        self.k = k
        self.net = nn.Sequential(nn.Conv2d(2 * inside, outside, 1, bias=False), nn.BatchNorm2d(outside), nn.LeakyReLU(0.2))

    def forward(self, x):
        near = torch.cdist(x.transpose(1, 2), x.transpose(1, 2)).topk(self.k, dim=-1, largest=False).indices
        batch, c, n = x.shape
        flat = near + torch.arange(batch, device=x.device).view(-1, 1, 1) * n
        around = x.transpose(1, 2).reshape(batch * n, c)[flat.view(-1)].view(batch, n, self.k, c)
        here = x.transpose(1, 2).unsqueeze(2).expand(-1, -1, self.k, -1)
        return self.net(torch.cat([around - here, here], dim=3).permute(0, 3, 1, 2)).amax(dim=-1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = nn.ModuleList([Edge(3, 64, 16), Edge(64, 64, 16), Edge(64, 128, 16)])
        self.head = nn.Sequential(nn.Conv1d(256, 512, 1), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.4), nn.Conv1d(512, 13, 1))

    def forward(self, x):
        outs = []
        for edge in self.edges:
            x = edge(x)
            outs.append(x)
        return self.head(torch.cat(outs, dim=1))


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(6):
    n = (2048, 3072, 1536)[step % 3]
    cloud = torch.rand(10, n, 3).cuda()
    label = torch.randint(0, 13, (10, 768)).cuda()
    picked = farthest(cloud, 768)
    points = torch.gather(cloud, 1, picked.unsqueeze(-1).expand(-1, -1, 3))
    out = net(points.transpose(1, 2).contiguous())
    loss = F.cross_entropy(out, label, ignore_index=12)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    found = out.detach().argmax(1)
    counts = torch.bincount((label * 13 + found).flatten(), minlength=169)
    print(step, loss.item(), counts.view(13, 13).diagonal().sum().item())
