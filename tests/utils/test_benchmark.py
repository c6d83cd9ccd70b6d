"""Timers and tables of times, beside PyTorch's."""

import pytest

import taeda
from taeda.utils import benchmark

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.benchmark")

ROWS = [
    (2, [0.5e-3, 0.52e-3, 0.51e-3, 0.9e-3], dict(label="L", sub_label="s", description="d")),
    (10, [3e-4, 3.1e-4, 2.9e-4, 3e-4, 3.3e-4], dict(label="L", sub_label="s", description="e")),
    (10, [3e-3], dict(label="L", sub_label="longer name", description="e")),
    (1, [2e-5], dict(label="L", sub_label="s", description="d", num_threads=4)),
    (1, [3.5, 3.6], dict(label="M", description="d", env="first")),
    (1, [2.5, 2.6], dict(label="M", description="d", env="second")),
]
SETUPS = ["pass", "x = 1", "x = 1\ny = 2"]


def measurements(package):
    for (number, times, options), setup in zip(ROWS, SETUPS * 2, strict=True):
        task = package.TaskSpec("f(x)\ng(x)" if number == 1 else "f(x)", setup, **options)
        yield package.Measurement(number, times, task)


@pytest.mark.parametrize("index", range(len(ROWS)))
def test_measurements_are_pytorchs(index):
    ours, other = (list(measurements(p))[index] for p in (benchmark, theirs))
    for name in ("median", "mean", "iqr"):
        assert getattr(ours, name) == pytest.approx(getattr(other, name))
    for name in ("significant_figures", "has_warnings", "title", "as_row_name", "label"):
        assert getattr(ours, name) == getattr(other, name)
    lines = [repr(m).splitlines() for m in (ours, other)]
    assert (
        lines[0][1:] == lines[1][1:]
        and lines[0][0].split(" at ")[0] == lines[1][0].split(" at ")[0]
    )


CHANGES = [
    lambda c: None,
    lambda c: c.trim_significant_figures(),
    lambda c: c.colorize(),
    lambda c: c.colorize(rowwise=True),
    lambda c: c.highlight_warnings(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_tables_are_pytorchs(change):
    texts = []
    for package in (benchmark, theirs):
        rows = list(measurements(package))
        compare = package.Compare(rows[:3] + rows[3:4])
        change(compare)
        texts.append(str(compare).splitlines())
    assert texts[0] == texts[1]


def test_functions_are_pytorchs():
    for t in (3e-9, 2.5e-7, 1e-6, 4e-3, 0.2, 3.0, 500.0):
        assert benchmark.select_unit(t) == theirs.select_unit(t)
        for n in (1, 2, 3):
            assert benchmark.trim_sigfig(t, n) == pytest.approx(theirs.trim_sigfig(t, n))
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]


def test_timers():
    calls = []
    timer = benchmark.Timer("f(x)", "x = torch.ones(2)", globals={"f": calls.append}, label="L")
    measured = timer.timeit(50)
    assert len(calls) == 52 and measured.number_per_run == 50 and measured.median > 0
    seen = []
    found = timer.blocked_autorange(lambda n, t: seen.append(n), min_run_time=0.01)
    assert len(found.raw_times) == len(seen) and sum(found.raw_times) >= 0.01
    assert timer.adaptive_autorange(0.5, max_run_time=0.1).raw_times
    before = taeda.get_num_threads()
    used = []
    benchmark.Timer(
        "used.append(torch.get_num_threads())", globals={"used": used}, num_threads=3
    ).timeit(1)
    assert set(used) == {3} and taeda.get_num_threads() == before


def test_what_is_not_there():
    for call in (
        lambda: benchmark.Timer(language="c++"),
        lambda: benchmark.Timer().collect_callgrind(),
        lambda: benchmark.Timer().repeat(),
        lambda: benchmark.Fuzzer(),
    ):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(ValueError, match="Measurement"):
        benchmark.Compare([3])
