"""ctc_loss against PyTorch and against the sum over all alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import taeda


def by_enumeration(log_probs: np.ndarray, labels: list[int], blank: int) -> float:
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == labels:
            total += np.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return float(-np.log(total))


@pytest.mark.parametrize("labels", [[1], [1, 2], [1, 1], [2, 1, 2], []])
def test_all_alignments(labels: list[int]) -> None:
    scores = taeda.from_numpy(np.random.default_rng(0).standard_normal((5, 3)))
    log_probs = scores.log_softmax(-1)
    padded = taeda.tensor([*labels, 0, 0])
    loss = taeda.nn.functional.ctc_loss(
        log_probs, padded, [5], [len(labels)], blank=0, reduction="none"
    )
    assert loss.item() == pytest.approx(by_enumeration(log_probs.numpy(), labels, 0))


def run(framework: Any, scores: np.ndarray, concatenated: bool, **kwargs: Any) -> list[Any]:
    x = framework.tensor(scores.tolist(), dtype=framework.float64, requires_grad=True)
    targets = framework.tensor([[1, 2, 2, 3], [3, 3, 0, 0], [1, 2, 3, 1]])
    lengths = framework.tensor([4, 2, 4])
    if concatenated:
        targets = framework.cat([row[:n] for row, n in zip(targets, lengths.tolist())])
    log_probs = x.log_softmax(-1)
    log_probs.retain_grad()
    inputs = framework.tensor([8, 6, 3])  # too short for the last labels
    loss = framework.nn.functional.ctc_loss(log_probs, targets, inputs, lengths, **kwargs)
    loss.sum().backward()
    return [loss.detach().numpy(), x.grad.numpy(), log_probs.grad.numpy()]


@pytest.mark.parametrize("concatenated", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_as_pytorch(reduction: str, concatenated: bool) -> None:
    torch = pytest.importorskip("torch")
    scores = np.random.default_rng(1).standard_normal((8, 3, 5))
    options = {"reduction": reduction, "zero_infinity": True}
    for got, expected in zip(
        run(taeda, scores, concatenated, **options), run(torch, scores, concatenated, **options)
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    infinite = run(taeda, scores, concatenated, reduction="none")[0]
    assert np.isinf(infinite[2])


def test_errors() -> None:
    ctc = taeda.nn.functional.ctc_loss
    log_probs, targets = taeda.zeros(4, 2, 3).log_softmax(-1), taeda.ones(2, 2, dtype=taeda.int64)
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        ctc(log_probs, targets, [4, 4], [2, 2], blank=3)
    with pytest.raises(RuntimeError, match="Expected input_lengths to have value at most 4"):
        ctc(log_probs, targets, [4, 5], [2, 2])
    with pytest.raises(RuntimeError, match="must be of size 2"):
        ctc(log_probs, targets, [4], [2, 2])
    with pytest.raises(RuntimeError, match="size at least 3"):
        ctc(log_probs, targets, [4, 4], [3, 2])
