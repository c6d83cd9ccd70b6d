"""Small models with an input each, for tests that train something and look at everything else."""

from __future__ import annotations

from collections.abc import Callable

import taeda as torch
from taeda import nn

Model = tuple[nn.Module, torch.Tensor]


def mlp(inputs: int = 20, outputs: int = 5, batch: int = 8) -> Model:
    layers = [nn.Linear(inputs, 30), nn.ReLU(), nn.Linear(30, outputs)]
    return nn.Sequential(*layers), torch.randn(batch, inputs)


def convnet(channels: int = 3) -> Model:
    layers = [nn.Conv2d(channels, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 9, 5))
    return model, torch.randn(4, channels, 8, 8)


def transformer() -> Model:
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1), torch.randn(6, 3, 16)


def lstm() -> Model:
    return nn.LSTM(8, 16, 2), torch.randn(5, 3, 8)


def bfloat16() -> Model:
    model, x = mlp()
    return model.bfloat16(), x.bfloat16()


def train_step(optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> torch.Tensor:
    """One step; what `loss` gave before it."""
    optimizer.zero_grad()
    value = loss()
    value.backward()
    optimizer.step()
    return value
