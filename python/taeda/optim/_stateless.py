"""What the function forms of the algorithms share, such as ``torch.optim.adam.adam``.

A function form takes parameters, gradients and state as lists of the same length and updates
parameters and state in place. The arithmetic is that of the optimizer's class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor

from ._helpers import _get_capturable_supported_devices
from .optimizer import ElementwiseOptimizer


def check_steps(steps: Sequence[Any]) -> None:
    """RuntimeError unless every step counter is a tensor."""
    if not all(isinstance(step, Tensor) for step in steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )


def _unscale(grads: Sequence[Tensor], scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """Divides the gradients by a GradScaler's scale; False where one of them is not finite."""
    if found_inf is not None and found_inf.item() == 1:
        return False
    if scale is not None:
        for grad in grads:
            grad.div_(scale.to(grad.device))
    return True


def _check_capturable(params: Sequence[Tensor], foreach: bool) -> None:
    devices = _get_capturable_supported_devices(supports_xla=not foreach)
    if any(p.device.type not in devices for p in params):
        raise AssertionError(
            f"If capturable=True, params and state_steps must be on supported devices: {devices}."
        )


def step_all(
    kind: type[ElementwiseOptimizer],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state: dict[str, Any],
    *,
    foreach: bool | None = None,
    fused: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """One step of each parameter, with the arithmetic of the class `kind`.

    Args:
        kind: the optimizer.
        params, grads: as many gradients as parameters.
        state: name in the optimizer's state -> one tensor, or None, for each parameter. An empty
            list leaves a name out.
        foreach, fused, capturable, differentiable: change no results; AssertionError or
            RuntimeError for the combinations that PyTorch refuses.
        grad_scale, found_inf: of a GradScaler, taken with ``fused=True``.
        options: what a parameter group of `kind` holds.

    Returns the state of each parameter, in which an algorithm may have put new tensors.
    """
    if fused and differentiable:
        raise RuntimeError(f"{kind.__name__} with fused=True does not support differentiable=True")
    if foreach and not fused and differentiable:
        raise AssertionError("_foreach ops don't support autograd")
    if fused and not _unscale(grads, grad_scale, found_inf):
        return []
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if capturable and not fused:
        _check_capturable(params, bool(foreach))
    algorithm = kind.__new__(kind)
    options = kind._plain(options)
    found = [
        {name: values[i] for name, values in state.items() if len(values)}
        for i in range(len(params))
    ]
    if params and params[0].is_cuda:
        from . import _lists

        how = {"foreach": foreach, "differentiable": differentiable}
        if _lists.step(algorithm, params, grads, found, options | how):
            return found
    for p, grad, own in zip(params, grads, found):
        algorithm._move(p, grad, own, options)
    return found
