"""torch_geometric's GIN over batches of small graphs of many sizes: batch norm, jumping knowledge, sum pools, SGD with a step schedule, cross-validation."""
import random

import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, global_add_pool

random.seed(816)
torch.manual_seed(816)


def mlp(a, b):
    return torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.BatchNorm1d(b), torch.nn.ReLU(), torch.nn.Linear(b, b), torch.nn.ReLU())


class Net(torch.nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.atoms = torch.nn.Embedding(60, width)
        self.convs = torch.nn.ModuleList(GINConv(mlp(width, width), train_eps=True) for _ in range(layers))
        self.out = torch.nn.Linear(width * (layers + 1), 12)

    def forward(self, data):
        x = self.atoms(data.x)
        pools = [global_add_pool(x, data.batch)]
        for c in self.convs:
            x = c(x, data.edge_index)
            pools.append(global_add_pool(x, data.batch))
        return self.out(F.dropout(torch.cat(pools, 1), 0.5, self.training))


def graph():
    n = random.randrange(10, 60)
    return Data(x=torch.randint(0, 60, (n,)), edge_index=torch.randint(0, n, (2, n * random.randrange(2, 6))), y=torch.randint(0, 12, (1,)))


graphs = [graph() for _ in range(2400)]
for fold in range(2):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    for step in range(6):
        data = Batch.from_data_list(graphs[fold * 1200 + step * 180 : fold * 1200 + step * 180 + 180]).to("cuda")
        loss = F.cross_entropy(model(data), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        data = Batch.from_data_list(graphs[1000:1400]).to("cuda")
        print(fold, loss.item(), (model(data).argmax(1) == data.y).sum().item())
