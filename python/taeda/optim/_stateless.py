"""What the function forms of the algorithms share, such as ``torch.optim.adam.adam``.

A function form takes parameters, gradients and state as lists of the same length and updates
parameters and state in place. The arithmetic is that of the optimizer's class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor, no_grad, where

from ._helpers import _get_capturable_supported_devices
from .optimizer import ElementwiseOptimizer


def check_steps(steps: Sequence[Any]) -> None:
    """RuntimeError unless every step counter is a tensor."""
    if not all(isinstance(step, Tensor) for step in steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )


def _stays(flag: Tensor | None, params: Sequence[Tensor], state: dict[str, Any]) -> bool:
    """Whether all is on the flag's CUDA device, where nobody waits for it."""
    if flag is None or not flag.is_cuda:
        return False
    return all(x.device == flag.device for x in (*params, *state.get("step", ())))


def _unscale(grads: Sequence[Tensor], scale: Tensor | None) -> None:
    """Divides the gradients by a GradScaler's scale."""
    if scale is not None:
        for grad in grads:
            grad.div_(scale.to(grad.device))


class _Undo:
    """Parameters and their state as they are, for where a flag turns out to be set."""

    def __init__(
        self, flag: Tensor, params: Sequence[Tensor], states: list[dict[str, Any]]
    ) -> None:
        self.is_set = flag.reshape(()) != 0
        self.states = states
        self.known = {id(x): (x, x.clone()) for x in (*params, *self._tensors())}

    def _tensors(self) -> list[Tensor]:
        return [x for state in self.states for x in state.values() if x is not None]

    @no_grad()
    def run(self) -> None:
        """Puts back what was there; state that is new becomes 0."""
        for x in self._tensors():
            if id(x) not in self.known:
                x.masked_fill_(self.is_set, 0)
        for x, before in self.known.values():
            x.copy_(where(self.is_set, before, x))


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
    stays = bool(fused) and _stays(found_inf, params, state)
    if fused and found_inf is not None and not stays and found_inf.item() == 1:
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
    undo = _Undo(found_inf, params, found) if stays and found_inf is not None else None
    if undo is not None and grad_scale is not None:
        grad_scale = where(undo.is_set, 1, grad_scale.to(undo.is_set.device))
    if fused:
        _unscale(grads, grad_scale)
    _step(algorithm, params, grads, found, options, foreach, differentiable)
    if undo is not None:
        undo.run()
    return found


def _step(
    algorithm: Any,
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: list[dict[str, Any]],
    options: dict[str, Any],
    foreach: bool | None,
    differentiable: bool,
) -> None:
    """One step of each parameter, on CUDA devices by lists where they can be."""
    if params and params[0].is_cuda:
        from . import _lists

        how = {"foreach": foreach, "differentiable": differentiable}
        if _lists.step(algorithm, params, grads, states, options | how):
            return
    for p, grad, own in zip(params, grads, states):
        algorithm._move(p, grad, own, options)
