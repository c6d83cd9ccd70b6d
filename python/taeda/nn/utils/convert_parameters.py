"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

import taeda
from taeda import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(param: Tensor, first: object) -> object:
    if first is not None and param.device != first:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return param.device


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other."""
    device = None
    parts = []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.view(-1))
    return taeda.cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Sets parameters to slices of ``vec``, sharing its memory."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device = None
    start = 0
    for param in parameters:
        device = _check_device(param, device)
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
