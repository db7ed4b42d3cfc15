"""Graph networks from torch_geometric: SAGE and GAT layers on random graphs whose sizes vary."""
import random

import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, SAGEConv, global_mean_pool


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = SAGEConv(128, 256)
        self.c2 = GATConv(256, 64, heads=4)
        self.c3 = SAGEConv(256, 256, aggr="max")
        self.out = torch.nn.Linear(256, 10)

    def forward(self, data):
        x = F.relu(self.c1(data.x, data.edge_index))
        x = F.elu(self.c2(x, data.edge_index))
        x = F.dropout(x, 0.3, training=self.training)
        x = F.relu(self.c3(x, data.edge_index))
        return self.out(global_mean_pool(x, data.batch))


def graph():
    nodes = random.randrange(2000, 12000)
    edges = nodes * random.randrange(6, 14)
    return Data(x=torch.randn(nodes, 128), edge_index=torch.randint(0, nodes, (2, edges)), y=torch.randint(0, 10, (1,)))


random.seed(13)
torch.manual_seed(13)
model = Net().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(12):
    data = Batch.from_data_list([graph() for _ in range(8)]).to("cuda")
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data), data.y)
    loss.backward()
    optimizer.step()
    print(step, data.num_nodes, data.num_edges, f"{loss.item():.3f}")
