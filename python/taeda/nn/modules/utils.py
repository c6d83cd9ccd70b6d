"""Helpers that layers share."""

from __future__ import annotations

from collections.abc import Iterable

from taeda.nn._ntuple import list_with_default as _list_with_default  # noqa: F401
from taeda.nn._ntuple import ntuple as _ntuple

__all__ = ["consume_prefix_in_state_dict_if_present"]

_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable, n: int) -> tuple:
    """(a, b) -> (b, b, a, a) for n = 2: the order of F.pad's argument."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Strips ``prefix`` from the keys of ``state_dict`` (and of its metadata), in place."""
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata.keys()):
        # "module" describes the wrapper itself; "module.fc" its child "fc".
        if key and key.startswith(prefix.removesuffix(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)
