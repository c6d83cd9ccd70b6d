"""Norms take and refuse parameters of other dtypes than the input's as PyTorch does."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")
DTYPES = ("float32", "float64", "float16", "bfloat16")


def calls(t: Any, own: Any, given: Any) -> dict[str, Any]:
    f = t.nn.functional
    x, rows, channels = t.ones(2, 4, 3, dtype=own), t.ones(3, dtype=given), t.ones(4, dtype=given)
    return {
        "layer_norm": lambda: f.layer_norm(x, (3,), rows, rows),
        "a weight alone": lambda: f.layer_norm(x, (3,), rows),
        "another bias": lambda: f.layer_norm(x, (3,), t.ones(3, dtype=own), rows),
        "group_norm": lambda: f.group_norm(x, 2, channels, channels),
        "batch_norm": lambda: f.batch_norm(x, channels, channels, channels, channels),
        "in training": lambda: f.batch_norm(x, None, None, channels, channels, training=True),
        "instance_norm": lambda: f.instance_norm(x, None, None, channels, channels),
    }


def said(call: Any) -> str:
    """The dtype of what a call gives, or the first line of its error."""
    try:
        return str(call().dtype)
    except RuntimeError as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize(("own", "given"), itertools.product(DTYPES, DTYPES))
def test_parameters_of_other_dtypes_are_taken_or_refused_as_in_pytorch(own, given):
    theirs = calls(torch, getattr(torch, own), getattr(torch, given))
    ours = calls(taeda, getattr(taeda, own), getattr(taeda, given))
    assert {name: said(call) for name, call in ours.items()} == {
        name: said(call) for name, call in theirs.items()
    }


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_functions_of_modules_are_named_as_in_pytorch(module):
    def named(t: Any) -> dict[str, str]:
        owner = getattr(t, module)
        names = [n for n in dir(owner) if not n.startswith("_") and n not in ("Tensor", "matmul")]
        found = {n: getattr(getattr(owner, n), "__name__", "") for n in names}
        return {n: name for n, name in found.items() if name.startswith(module)}

    assert named(taeda) == named(torch)


@pytest.mark.parametrize(("window", "aligned"), [(4, True), (4, False), (8, True), (6, True)])
def test_windows_are_aligned_with_the_signal(window, aligned):
    def run(t: Any) -> Any:
        x = t.arange(20.0)
        return t.stft(
            x, 8, 2, window, t.ones(window), False, return_complex=True, align_to_window=aligned
        )

    ours, theirs = run(taeda), run(torch)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert abs(ours.numpy() - theirs.numpy()).max() < 1e-4
    for t in (taeda, torch):
        with pytest.raises(RuntimeError, match="only be set when center = false"):
            t.stft(t.ones(20), 8, window=t.ones(8), return_complex=True, align_to_window=aligned)
