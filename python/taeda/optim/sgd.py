"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from . import _fused
from ._stateless import step_all
from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative

__all__ = ["SGD", "sgd"]

_fused_sgd_ = _fused.fused("_fused_sgd_")


class SGD(ElementwiseOptimizer):
    """Stochastic gradient descent, with momentum.

        g = g + weight_decay p
        v = momentum v + (1 - dampening) g
        p = p - lr v            (nesterov: p - lr (g + momentum v))

    The first v is g itself. ``lr`` is outside of v, so that changing it acts at once.

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.001 unless given; a number or a tensor of one element.
        momentum: how much of the last direction stays.
        dampening: how much of the gradient is left out of the direction.
        weight_decay: how much of the parameter is added to its gradient (L2).
        nesterov: looks ahead along the direction (needs momentum and no dampening).
        maximize: goes up instead of down.
        foreach, differentiable, fused: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.0620], requires_grad=True)
    """

    _by_lists = True
    _counts_steps = False

    _fused_takes_scaler = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_lr(lr)
        check_not_negative(momentum, "momentum value")
        check_not_negative(weight_decay, "weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        grads = _fused.gradients(params, group) if _fused_sgd_ is not None else None
        if grads is None:
            if not _fused.overflowed(self):
                super()._step_group(group, params)
            return
        momentum = group["momentum"]
        if momentum == 0:
            self._run_fused(group, params, grads, [])
            return
        # A buffer starts as the gradient, whatever the dampening. The rest of the group steps
        # together.
        state = self.state
        first = [p for p in params if state[p].get("momentum_buffer") is None]
        if first:
            buffers = [taeda.zeros_like(p, memory_format=taeda.preserve_format) for p in first]
            self._run_fused(group, first, [p.grad for p in first], buffers, first=True)
            for p, buffer in zip(first, buffers):
                state[p]["momentum_buffer"] = buffer
            starting = set(first)
            params = [p for p in params if p not in starting]
            grads = [p.grad for p in params]
        if params:
            self._run_fused(group, params, grads, [state[p]["momentum_buffer"] for p in params])

    def _run_fused(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Any],
        buffers: list[Any],
        first: bool = False,
    ) -> None:
        function = _fused_sgd_
        lr = group["lr"]
        if type(lr) is not float:
            function, lr = _fused.with_rate(function, lr)
        function(
            params,
            grads,
            buffers,
            weight_decay=float(group["weight_decay"]),
            momentum=group["momentum"],
            lr=lr,
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
            grad_scale=self.grad_scale,
            found_inf=self.found_inf,
        )

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        # Without momentum nothing is remembered, and no entry is made.
        return self.state[p] if group["momentum"] != 0 else {}

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        p.add_(grad, alpha=-group["lr"])


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of `SGD` by lists, in place; a buffer that is None is put into its list."""
    states = step_all(
        SGD,
        params,
        d_p_list,
        {"momentum_buffer": momentum_buffer_list if momentum != 0 else []},
        foreach=foreach,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
    )
    for i, state in enumerate(states):
        if "momentum_buffer" in state:
            momentum_buffer_list[i] = state["momentum_buffer"]
