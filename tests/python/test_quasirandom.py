"""Sobol' sequences are PyTorch's, point by point."""

import pytest

import taeda
from taeda.quasirandom import SobolEngine

torch = pytest.importorskip("torch")


def both(*args, **kwargs):
    taeda.manual_seed(4)
    torch.manual_seed(4)
    return SobolEngine(*args, **kwargs), torch.quasirandom.SobolEngine(*args, **kwargs)


@pytest.mark.parametrize("dimension", [1, 2, 5, 64, 1111])
@pytest.mark.parametrize(
    "options", [{}, {"scramble": True}, {"scramble": True, "seed": 7}], ids=str
)
def test_points(dimension, options):
    a, b = both(dimension, **options)
    assert repr(a) == repr(b)
    for draw in (
        lambda e: e.draw(),
        lambda e: e.draw(5),
        lambda e: e.draw_base2(1),
        lambda e: e.fast_forward(37).draw(3),
        lambda e: e.reset().draw_base2(3),
        lambda e: e.reset().fast_forward(9).draw(2),
        lambda e: e.quasi,
        lambda e: e.sobolstate,
        lambda e: e.shift,
    ):
        assert draw(a).tolist() == draw(b).tolist()
        assert a.num_generated == b.num_generated


def test_table_of_scipy():
    """SciPy has the same numbers, for the dimensions beyond those that are stored."""
    pytest.importorskip("scipy")
    a, b = both(2000)
    assert a.draw(9).tolist() == b.draw(9).tolist()


def test_out_dtype_and_errors():
    a, b = both(3)
    out = taeda.empty(0, dtype=taeda.float64)
    assert a.draw(4, out=out) is out
    assert out.tolist() == b.draw(4, dtype=torch.float64).tolist()
    assert a.draw(2, dtype=taeda.float16).dtype == taeda.float16
    for engine in (SobolEngine, torch.quasirandom.SobolEngine):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            engine(0)
        with pytest.raises(ValueError, match=r"n=3\+2\*\*1=5"):
            engine(1).fast_forward(3).draw_base2(1)


def test_integrates_better_than_random_numbers():
    points = SobolEngine(4, scramble=True, seed=0).draw(4096)
    error = (points.prod(-1).mean() - 0.5**4).abs()
    assert error < 1e-4
