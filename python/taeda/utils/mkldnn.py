"""Modules converted for oneDNN, which taeda's own modules use without."""

from __future__ import annotations

from typing import Any

from taeda import _missing

__all__ = ["to_mkldnn"]


def to_mkldnn(module: Any, dtype: Any = None) -> Any:
    """Not there: there are no tensors in oneDNN's layouts; operators convert where it pays."""
    raise NotImplementedError(
        "to_mkldnn: there are no oneDNN tensors; call the module as it is, its operators use oneDNN"
    )


__getattr__, __dir__ = _missing.attributes(__name__)
