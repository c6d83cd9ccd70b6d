"""pytorch-metric-learning: embeddings by a miner and a triplet loss, then by other losses."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
centres = torch.randn(5, 6)
labels = torch.arange(40) % 5
data = centres[labels] + 0.3 * torch.randn(40, 6)

distance = distances.CosineSimilarity()
loss = losses.TripletMarginLoss(distance=distance, reducer=reducers.ThresholdReducer(low=0))
miner = miners.TripletMarginMiner(distance=distance, type_of_triplets="semihard")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(10):
    optimizer.zero_grad()
    embeddings = model(data)
    value = loss(embeddings, labels, miner(embeddings, labels))
    value.backward()
    optimizer.step()
    print("triplets", miner.num_triplets, "loss", value.item())
for name in ("ContrastiveLoss", "NTXentLoss", "MultiSimilarityLoss", "CircleLoss", "SupConLoss"):
    embeddings = model(data)
    value = getattr(losses, name)()(embeddings, labels)
    (gradient,) = torch.autograd.grad(value, embeddings)
    print(name, value.item(), gradient.norm().item())
