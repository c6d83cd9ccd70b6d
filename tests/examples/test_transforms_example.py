"""examples/transforms.py: transforms compute what loops do, in both frameworks."""

import sys
from pathlib import Path

import numpy as np
import pytest

import taeda

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import transforms


def arrays(result):
    return [np.array(x.tolist()) for x in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("topic", transforms.TOPICS, ids=lambda f: f.__name__)
def test_transforms_compute_what_loops_do(topic):
    found, expected = topic(taeda)
    for a, b in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_allclose(a[: len(b)] if b.ndim else a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("topic", transforms.TOPICS, ids=lambda f: f.__name__)
def test_pytorch_runs_the_same_program(topic):
    torch = pytest.importorskip("torch")
    for a, b in zip(arrays(topic(taeda)[0]), arrays(topic(torch)[0]), strict=True):
        assert a.shape == b.shape
