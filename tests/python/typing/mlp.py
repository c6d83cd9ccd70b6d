"""A classifier of points, trained: a program that type checkers find nothing in."""

from __future__ import annotations

import math
from collections.abc import Iterator

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F
from taeda import Tensor, optim
from taeda.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Points(Dataset[tuple[Tensor, Tensor]]):
    """Points of two rings, which belong to the ring's class."""

    def __init__(self, count: int, noise: float = 0.1) -> None:
        angle = torch.rand(count) * (2 * math.pi)
        self.labels = torch.randint(0, 2, (count,))
        radius = 1 + self.labels.float() + noise * torch.randn(count)
        self.points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)

    def __len__(self) -> int:
        return self.points.size(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.points[index], self.labels[index]


class Net(nn.Module):
    """Two hidden layers."""

    def __init__(self, hidden: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.first = nn.Linear(2, hidden)
        self.second = nn.Linear(hidden, hidden, bias=False)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(hidden, 2)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        x = self.dropout(torch.tanh(self.norm(self.second(x))))
        return self.last(x) * self.scale


def batches(data: Points, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    order = torch.randperm(len(data))
    for rows in order.split(size):
        yield data.points[rows], data.labels[rows]


def train(epochs: int = 2) -> float:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Points(256)
    held, rest = random_split(data, [64, 192], generator=torch.Generator().manual_seed(1))
    model = Net().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loss_function = nn.CrossEntropyLoss(label_smoothing=0.05)
    loss = torch.zeros(())
    for _ in range(epochs):
        model.train()
        for x, y in DataLoader(rest, batch_size=32, shuffle=True, drop_last=True):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_function(model(x.to(device)), y.to(device))
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            assert norm.item() >= 0
            optimizer.step()
        schedule.step()
    for x, y in batches(data, 100):
        assert x.shape[0] == len(y)
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(held, batch_size=64):
            right += int((model(x).argmax(dim=1) == y).sum().item())
    pairs = TensorDataset(data.points, data.labels)
    assert len(pairs) == 256 and pairs[0][0].ndim == 1
    return loss.item() + right / len(held)


if __name__ == "__main__":
    print(f"{train():.3f}")
