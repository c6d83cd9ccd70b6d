"""Ten runs, half of them with one thread and half with two, give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.models import train_step

import taeda as torch
from taeda import nn
from taeda.nn import functional as F


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def bits(x: torch.Tensor) -> bytes:
    return x.detach().contiguous().numpy().tobytes()


def runs(work: Callable[[], list[torch.Tensor]]) -> set[tuple[bytes, ...]]:
    seen = set()
    for i in range(10):
        torch.set_num_threads(1 + i % 2)
        torch.manual_seed(0)
        seen.add(tuple(bits(x) for x in work()))
    return seen


def step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable) -> list[torch.Tensor]:
    values = []
    for _ in range(2):
        values.append(train_step(optimizer, loss))
    return values + list(model.parameters())


def convnet() -> list[torch.Tensor]:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3)
    )
    model.append(nn.Conv2d(16, 32, 3, stride=2)).append(nn.Flatten()).append(nn.LazyLinear(10))
    x, y = torch.randn(16, 3, 28, 28), torch.randint(0, 10, (16,))
    model(x)
    return step(
        model, torch.optim.SGD(model.parameters(), 0.1, 0.9), lambda: F.cross_entropy(model(x), y)
    )


def transformer() -> list[torch.Tensor]:
    model = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    embedding = nn.Embedding(100, 64)
    ids = torch.randint(0, 100, (8, 50))
    both = nn.ModuleList([model, embedding])
    return step(
        both, torch.optim.AdamW(both.parameters()), lambda: model(embedding(ids)).square().mean()
    )


def lstm() -> list[torch.Tensor]:
    model = nn.LSTM(32, 64, 2, bidirectional=True)
    x = torch.randn(20, 16, 32)
    return step(model, torch.optim.Adam(model.parameters()), lambda: model(x)[0].square().mean())


def half() -> list[torch.Tensor]:
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64)).bfloat16()
    x = torch.randn(64, 256).bfloat16()
    torch_float = step(
        model, torch.optim.SGD(model.parameters(), 0.1), lambda: model(x).float().square().mean()
    )
    return [t.float() for t in torch_float]


def indexing() -> list[torch.Tensor]:
    x = torch.randn(20000, 8)
    at = torch.randint(0, 50, (20000,))
    sums = torch.zeros(50, 8).index_add_(0, at, x)
    scattered = torch.zeros(50, 8).scatter_add_(0, at[:, None].expand(-1, 8), x)
    put = torch.zeros(50, 8).index_put_((at,), x, accumulate=True)
    return [sums, scattered, put, torch.bincount(at, x[:, 0]), torch.histc(x, 40)]


def reductions() -> list[torch.Tensor]:
    x = torch.randn(300000)
    m = x.reshape(300, 1000)
    some = [x.sum(), x.double().sum(), x.std(), x.norm(3), m.sum(0), m.mean(1), m.logsumexp(0)]
    return [
        *some,
        x.cumsum(0),
        m.softmax(0),
        m.t() @ m,
        x.sort()[0],
        torch.linalg.svdvals(m[:, :200]),
    ]


@pytest.mark.parametrize("work", [convnet, transformer, lstm, half, indexing, reductions])
def test_same_bits(work: Callable[[], list[torch.Tensor]]) -> None:
    assert len(runs(work)) == 1
