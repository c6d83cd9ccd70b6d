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
    """All elements of all parameters, one after the other, as one vector that gradients flow
    through.

    Args:
        parameters: those of a model, in their order.

    Raises:
        TypeError: they lie on different devices.

    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 3).parameters()).shape
    torch.Size([9])
    """
    device = None
    parts = []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.view(-1))
    return taeda.cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """The inverse of `parameters_to_vector`: sets parameters to slices of ``vec``, whose memory
    they share from then on.

    Args:
        vec: as many elements as all parameters have.
        parameters: those of a model, in their order.

    Raises:
        TypeError: ``vec`` is no tensor, or the parameters lie on different devices.

    >>> model = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.vector_to_parameters(torch.arange(3.0), model.parameters())
    >>> model.weight.data, model.bias.data
    (tensor([[0., 1.]]), tensor([2.]))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device = None
    start = 0
    for param in parameters:
        device = _check_device(param, device)
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
