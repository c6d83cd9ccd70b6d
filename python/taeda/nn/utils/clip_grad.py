"""Limits on gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import taeda
from taeda import Tensor

__all__ = [
    "clip_grad_norm_",
    "clip_grad_norm",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


_lists: Any = taeda  # its functions on lists are made when they are asked for


def _parameter_list(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    parameters = list(parameters)
    if not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.",
            stacklevel=4,
        )
    return parameters


def _by_device(grads: list[Tensor], foreach: bool | None) -> Iterable[tuple[Any, list[Tensor]]]:
    """Gradients that are taken together, with their device, and those taken one by one, with None:
    functions on lists are loops where they are not launches."""
    rows: dict[Any, list[Tensor]] = {}
    for grad in grads:
        together = grad.is_cuda and foreach is not False and not grad.is_sparse
        rows.setdefault(grad.device if together else None, []).append(grad)
    return rows.items()


@taeda._C._hint_keywords
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of ``tensors`` together, as if they were one vector. Nothing is
    recorded for its gradient.

    Args:
        tensors: one tensor or several, gradients as a rule.
        norm_type: the order p; ``inf`` is the largest absolute value.
        error_if_nonfinite: whether a norm that is NaN or infinite is an error.
        foreach: whether tensors on a CUDA device are taken together, as they are by default.

    Raises:
        RuntimeError: ``error_if_nonfinite``, and the norm is NaN or infinite.

    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return taeda.tensor(0.0)
    if any(t.is_sparse for t in tensors):
        raise NotImplementedError(
            "Could not run 'aten::linalg_vector_norm' with arguments from the 'SparseCPU' backend: "
            "gradients of layers made with sparse=True have no norm; make them with sparse=False, "
            "or clip the others."
        )
    device = tensors[0].device
    norms = list[Tensor]()
    with taeda.no_grad():
        for together, group in _by_device(tensors, foreach):
            if together is None:
                norms += [taeda.linalg.vector_norm(t, norm_type).to(device) for t in group]
            else:
                norms += [norm.to(device) for norm in _lists._foreach_norm(group, norm_type)]
        total_norm = taeda.linalg.vector_norm(taeda.stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total_norm)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from "
            "`parameters` is non-finite, so it cannot be clipped. To disable "
            "this error and scale the gradients by the non-finite norm anyway, "
            "set `error_if_nonfinite=False`"
        )
    return total_norm


@taeda._C._hint_keywords
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiplies gradients by ``max_norm / (total_norm + 1e-6)``, in place, where that is below 1.

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        max_norm: what the norm is to be at most.
        total_norm: the norm that it is, from `get_total_norm`: also one over other processes'
            parts.
        foreach: whether gradients on a CUDA device are taken together, as they are by default.

    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grads_with_norm_(p, 1.0, torch.tensor(5.0))
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    with taeda.no_grad():
        parameters = [parameters] if isinstance(parameters, Tensor) else parameters
        grads = [p.grad for p in parameters if p.grad is not None]
        max_norm = float(max_norm)  # an error also where there is nothing to scale
        if not grads:
            return
        # Multiplying by one where nothing is to be done avoids reading the norm back.
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for device, there in _by_device(grads, foreach):
            if device is None:
                for grad in there:
                    grad.mul_(scale.to(grad.device))
            else:
                _lists._foreach_mul_(there, scale.to(device))


@taeda._C._hint_keywords
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients so that their norm, of all together as one vector, is at most ``max_norm``
    (Pascanu, Mikolov and Bengio 2013). To be called between ``backward()`` and the optimizer's
    step.

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        max_norm: what the norm is to be at most.
        norm_type: the order of the norm; ``inf`` is the largest absolute value.
        error_if_nonfinite: whether a norm that is NaN or infinite is an error.
        foreach: whether gradients on a CUDA device are taken together, as they are by default.

    Returns:
        the norm as it was before.

    Raises:
        RuntimeError: ``error_if_nonfinite``, and the norm is NaN or infinite.

    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_(p, max_norm=1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    with taeda.no_grad():
        parameters = _parameter_list(parameters)
        grads = [p.grad for p in parameters if p.grad is not None]
        total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
        clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The old name of `clip_grad_norm_`, which takes the same arguments; warns that it is
    deprecated.
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated "
        "in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@taeda._C._hint_keywords
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps each element of the gradients to ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        clip_value: the largest absolute value that is left.
        foreach: whether gradients on a CUDA device are taken together, as they are by default.

    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, -0.1])
    >>> torch.nn.utils.clip_grad_value_(p, 1.0)
    >>> p.grad
    tensor([ 1.0000, -0.1000])
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    clip_value = float(clip_value)
    with taeda.no_grad():
        grads = [p.grad for p in parameters if p.grad is not None]
        for device, there in _by_device(grads, foreach):
            if device is None:
                for grad in there:
                    grad.clamp_(min=-clip_value, max=clip_value)
            else:
                _lists._foreach_clamp_min_(there, -clip_value)
                _lists._foreach_clamp_max_(there, clip_value)
