"""The same expression in taeda and in PyTorch: results, texts and errors must agree.

Coordinate tensors are compared coalesced."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

LAYOUTS = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def name_of(layout: Any) -> str:
    return str(layout).partition(".")[2]


def array(x: Any) -> Any:
    """A dense tensor for NumPy, its history left behind."""
    x = x.detach()
    return np.asarray(x.tolist()).reshape(tuple(x.shape))


def plain(x: Any) -> Any:
    """What a result consists of, so that those of the two can be compared."""
    if isinstance(x, (list, tuple)):
        return [plain(part) for part in x]
    if not hasattr(x, "layout"):
        return x
    layout = name_of(x.layout)
    head = [layout, str(x.dtype).partition(".")[2], tuple(x.shape)]
    if layout == "strided":
        return [*head, array(x)]
    x = x.detach()
    if layout == "sparse_coo":
        # Whether it is known to be coalesced may differ: sums of uncoalesced tensors may have
        # values one after the other or added up.
        x = x.coalesce()
        head.append((x.sparse_dim(), x.dense_dim(), x._nnz()))
    return [*head, *(array(getattr(x, part)()) for part in LAYOUTS[layout])]


def same(ours: Any, theirs: Any, tolerance: float = 1e-6) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs), (ours, theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, tolerance)
    elif isinstance(ours, np.ndarray):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    else:
        assert ours == theirs


def run(framework: Any, code: str, values: dict[str, Any]) -> Any:
    """The value of an expression, or the type and the beginning of its error's text."""
    names = {name: make(framework) for name, make in values.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(code, {"torch": framework, **names})
    except Exception as error:
        advice = r"\. This could|: convert|: item\(\) takes"
        return [type(error).__name__, re.split(advice, str(error))[0]]


def compare(torch: Any, code: str, values: dict[str, Any], text: bool = False) -> None:
    import taeda

    ours, theirs = run(taeda, code, values), run(torch, code, values)
    if text:
        assert repr(ours) == repr(theirs)
    same(plain(ours), plain(theirs))
