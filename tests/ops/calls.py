"""Running the text of a call under taeda and under PyTorch, to compare what comes out."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import taeda


class Three:
    """Stands for 3 where an index is wanted."""

    def __index__(self) -> int:
        return 3


def names(framework: Any) -> dict[str, Any]:
    """What the texts of calls may use."""
    t = framework
    return {
        "torch": t,
        "nn": t.nn,
        "F": t.nn.functional,
        "T": t.tensor,
        "THREE": Three(),
        "nan": math.nan,
        "inf": math.inf,
        "x": t.arange(24.0).reshape(2, 3, 4) / 7 - 1,
        "v": t.tensor([0.5, -1.0, 2.0, 0.25]),
        "u": t.tensor([1, 2, 3], dtype=t.uint8),
        "b": t.tensor([True, False, True]),
        "i": t.tensor([[0, 2, 1], [1, 0, 0]]),
    }


def plain(value: Any) -> Any:
    """A result as nested Python values: tensors with dtype, shape, strides and requires_grad."""
    if hasattr(value, "detach") and hasattr(value, "requires_grad"):
        data = value.detach()
        values = None if data.is_meta else data.tolist()
        return (str(data.dtype), tuple(data.shape), bool(value.requires_grad), values)
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value if isinstance(value, (bool, int, float, complex, str)) else str(value)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, complex) and isinstance(b, complex):
        return close(a.real, b.real) and close(a.imag, b.imag)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=3e-6, abs_tol=1e-6)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def outcome(text: str, framework: Any) -> Any:
    """The value of an expression, or the error's type; a text with statements sets `result`."""
    scope = names(framework)
    framework.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if "result = " not in text:
                text = "result = " + text
            exec(text, scope)
            return plain(scope["result"])
        except Exception as error:
            return ("error", type(error).__name__, str(error).split("\n")[0])


def compare(text: str, message: bool = False) -> None:
    """Fails unless both give the same: of errors the type, and with `message` the text."""
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(text, taeda), outcome(text, torch)
    failed = isinstance(theirs, tuple) and theirs[:1] == ("error",)
    if failed and not message and isinstance(ours, tuple):
        ours, theirs = ours[:2], theirs[:2]
    assert close(ours, theirs), f"{text}\ntaeda:   {ours}\nPyTorch: {theirs}"
