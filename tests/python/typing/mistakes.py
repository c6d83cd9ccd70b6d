"""A program with mistakes: each line that a comment marks is one that type checkers find."""

from __future__ import annotations

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F
from taeda import Tensor
from taeda.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear("4", 8)  # mistake
        self.second = nn.Linear(8, 2, biass=True)  # mistake
        self.third = nn.Liner(8, 2)  # mistake

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        return x.shape  # mistake


def train() -> float:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr="0.1")  # mistake
    data = TensorDataset(torch.randn(8, 4), torch.zeros(8, dtype="int64"))  # mistake
    x = torch.ones(2, 4)
    x.reshpae(4, 2)  # mistake
    torch.sum(x, dims=1)  # mistake
    torch.tesnor([1.0])  # mistake
    for batch, target in DataLoader(data, batch_size="4"):  # mistake
        loss = F.cross_entropy(model(batch), target, reduction=1)  # mistake
        loss.backward()
        optimizer.step(3)  # mistake
    torch.zeros(2, dtype=torch.float23)  # mistake
    torch.optim.lr_scheduler.StepLR(model, step_size=3)  # mistake
    count: int = x.mean()  # mistake
    model([1.0])  # mistake
    x.to(dtype=3.5)  # mistake
    torch.cat(x, 0.5)  # mistake
    nn.Conv2d(3, 8, kernel_size="3")  # mistake
    x = x["first"]  # mistake
    best = torch.topk(x, k=2).value  # mistake
    torch.split(x, 2.5)  # mistake
    nn.functional.softmax(x, axis=1)  # mistake
    torch.linalg.nrom(x)  # mistake
    nn.Sequential(3)  # mistake
    model.fourth(x)  # mistake
    nn.Linear(2, 2).weight.normall_()  # mistake
    nn.Embedding(3, 2).weight.data.fil_(0)  # mistake
    for parameter in nn.Linear(2, 2).parameters():
        parameter.reshpae(-1)  # mistake
    torch.compile(F.relu)(x, negative=3)  # mistake
    torch.func.vmap(torch.sin)(x).sine()  # mistake
    model.fourth + 1  # mistake
    x.sum().item().upper()  # mistake
    return x.max(dim=best) + count  # mistake
