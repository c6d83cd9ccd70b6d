"""torch-geometric: a graph convolution network on a ring."""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

torch.manual_seed(0)
n = 30
ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
data = Data(
    x=torch.randn(n, 8), edge_index=torch.cat([ring, ring.flip(0)], 1), y=torch.arange(n) % 3
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(8, 16)
        self.second = GATConv(16, 8, heads=2)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, data):
        h = self.first(data.x, data.edge_index).relu()
        return self.last(self.second(h, data.edge_index).relu())


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(5):
    out = net(data)
    loss = torch.nn.functional.cross_entropy(out, data.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
print("pooled", *global_mean_pool(out, torch.arange(n) // 10).flatten().tolist())
