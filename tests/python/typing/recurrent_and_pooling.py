"""Layers whose constructors and results have types of their own."""

import taeda as torch
from taeda import nn
from taeda.nn import functional as F

images = torch.rand(2, 3, 8, 8)
pooled = F.adaptive_max_pool2d(images, (None, 2))
smaller = F.max_pool2d(images, 2).sum() + F.adaptive_avg_pool2d(images, 1).sum()
values, indices = F.max_pool2d(images, 2, return_indices=True)
print(pooled.shape, smaller.item() > 0, values.shape, indices.dtype)

lstm = nn.LSTM(4, 8, num_layers=2, batch_first=True, proj_size=3)
output, (hidden, cell) = lstm(torch.rand(2, 5, 4))
gru = nn.GRU(input_size=4, hidden_size=8, bidirectional=True)
states, last = gru(torch.rand(5, 2, 4))
rnn = nn.RNN(4, 8, nonlinearity="relu")
print(output.shape, hidden.shape, cell.shape, states.shape, last.shape, rnn.nonlinearity)

norm = nn.BatchNorm2d(3)
if norm.running_mean is not None:
    print(norm.running_mean.sum())
with torch.device("cpu"):
    print(torch.rand(2).device.type)
