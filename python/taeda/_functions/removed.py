"""Functions that PyTorch removed: calling one raises RuntimeError and names what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _removed(name: str, instead: str) -> Callable[..., Any]:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "This function was deprecated since version 1.9 and is now removed. "
            f"`torch.{name}` is deprecated in favor of `torch.linalg.{instead}`."
        )

    raises.__name__ = raises.__qualname__ = name
    raises.__doc__ = f"RuntimeError: use `torch.linalg.{instead}`."
    return raises


eig = _removed("eig", "eig")
lstsq = _removed("lstsq", "lstsq")
matrix_rank = _removed("matrix_rank", "matrix_rank")
solve = _removed("solve", "solve")
symeig = _removed("symeig", "eigh")
