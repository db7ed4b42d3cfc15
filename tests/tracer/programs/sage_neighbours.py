"""torch_geometric's SAGE with neighbours sampled by hand on the host: three hops of fixed fan-out, duplicates merged, bfloat16 autocast off, Adam, inference over chunks of nodes."""
import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv

torch.manual_seed(914)
NODES = 60000
table = torch.randint(0, NODES, (NODES, 12))
features, labels = torch.randn(NODES, 96), torch.randint(0, 30, (NODES,))


def sample(seeds, hops=(8, 6, 4)):
    nodes, layers = seeds, []
    for fan in hops:
        near = table[nodes][:, torch.randperm(12)[:fan]]
        merged, place = torch.cat([nodes, near.flatten()]).unique(return_inverse=True)
        edge = torch.stack([place[len(nodes):], place[: len(nodes)].repeat_interleave(fan)])
        layers.append((edge, place[: len(nodes)], len(merged)))
        nodes = merged
    return nodes, layers[::-1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(96, 192), SAGEConv(192, 192), SAGEConv(192, 30)])

    def forward(self, x, layers):
        for i, (conv, (edge, keep, count)) in enumerate(zip(self.convs, layers)):
            x = conv(x, edge.cuda())[keep.cuda()]
            if i < 2:
                x = F.dropout(F.relu(x), 0.3, self.training)
        return x


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), 0.003)
order = torch.randperm(NODES)
for step in range(8):
    seeds = order[step * 600 : step * 600 + 600]
    nodes, layers = sample(seeds)
    loss = F.cross_entropy(net(features[nodes].cuda(), layers), labels[seeds].cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, len(nodes), loss.item())
net.eval()
with torch.no_grad():
    for seeds in order[6000:8000].split(1000):
        nodes, layers = sample(seeds)
        print((net(features[nodes].cuda(), layers).argmax(1).cpu() == labels[seeds]).float().mean().item())
