"""torch.segment_reduce, against PyTorch."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
KINDS = ["sum", "mean", "prod", "max", "min"]


def both(data, reduce, **options):
    """Values and gradients of both, or the messages with which they refuse."""
    found = []
    for framework in (taeda, torch):
        x = framework.tensor(data, requires_grad=True)
        given = {
            name: framework.tensor(value) if isinstance(value, list) else value
            for name, value in options.items()
        }
        y = framework.segment_reduce(x, reduce, **given)
        y.nan_to_num(0, 0, 0).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("reduce", KINDS)
@pytest.mark.parametrize("initial", [None, 1.5, 3])
def test_values_and_gradients(reduce, initial):
    rows = [[3.0, 1.0], [3.0, 0.0], [1.0, 2.0], [0.0, 2.0], [2.0, 5.0], [4.0, 0.0]]
    both(rows, reduce, lengths=[2, 0, 4], initial=initial)
    both(rows, reduce, offsets=[0, 2, 2, 6], initial=initial)
    both(rows, reduce, offsets=[1, 2, 5], initial=initial)
    both(rows, reduce, lengths=[2, 1], unsafe=True, initial=initial)
    both([3.0, 3.0, 1.0, 0.0], reduce, lengths=[3, 1], initial=initial)
    both([rows[:3], rows[3:]], reduce, lengths=[[1, 2], [2, 1]], axis=1, initial=initial)


def test_nan_and_empty():
    x = taeda.tensor([1.0, float("nan"), 2.0, 3.0])
    top = taeda.segment_reduce(x, "max", lengths=taeda.tensor([2, 2])).tolist()
    assert np.isnan(top[0]) and top[1] == 3
    empty = taeda.segment_reduce(taeda.ones(0, 2), "mean", lengths=taeda.tensor([0, 0]))
    assert empty.shape == (2, 2) and empty.isnan().all()


@pytest.mark.parametrize(
    "options",
    [
        {"lengths": [2, 1]},
        {"lengths": [7, -1]},
        {"lengths": [2, 4], "axis": 1},
        {"indices": [0, 0, 0, 0, 1, 1]},
        {"offsets": [0, 3, 2, 6]},
        {},
    ],
)
def test_refused(options):
    data = np.ones((6, 2), dtype="float32")
    for framework in (taeda, torch):
        given = {k: framework.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
        with pytest.raises(RuntimeError):
            framework.segment_reduce(framework.from_numpy(data), "sum", **given)
    with pytest.raises(RuntimeError, match="reduce argument must be"):
        taeda.segment_reduce(taeda.ones(2), "any", lengths=taeda.tensor([2]))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        taeda.segment_reduce(taeda.ones(2).long(), "sum", lengths=taeda.tensor([2]))
