"""RMSprop (Tieleman & Hinton, 2012)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from . import _fused
from ._stateless import check_steps, step_all
from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative, temporary

__all__ = ["RMSprop", "rmsprop"]

_fused_rmsprop_ = _fused.fused("_fused_rmsprop_")
_add_one_ = _fused.fused("_add_one_")


class RMSprop(ElementwiseOptimizer):
    """Steps divided by the root of a running mean square (Tieleman and Hinton 2012).

        v = alpha v + (1 - alpha) g^2
        p = p - lr g / (sqrt(v) + eps)

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.01 unless given; a number or a tensor of one element.
        alpha: how much of the mean square stays.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient (L2).
        momentum: how much of the last step stays.
        centered: subtracts the square of the mean gradient from v, a variance. arXiv 1308.0850
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.RMSprop([w], lr=0.01)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.7800], requires_grad=True)
    """

    _by_lists = True
    _tensor_state = ("square_avg",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps, "epsilon value")
        check_not_negative(momentum, "momentum value")
        check_not_negative(weight_decay, "weight_decay value")
        check_not_negative(alpha, "alpha value")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        super()._init_state(state, p, group)
        if group["momentum"] > 0:
            state["momentum_buffer"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)
        if group["centered"]:
            state["grad_avg"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        grads = _fused.gradients(params, group) if _fused_rmsprop_ is not None else None
        if grads is None:
            super()._step_group(group, params)
            return
        states = [self._state_of(p, group) for p in params]
        _add_one_([s["step"] for s in states])
        function = _fused_rmsprop_
        lr = group["lr"]
        if type(lr) is not float:
            function, lr = _fused.with_rate(function, lr)
        function(
            params,
            grads,
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if group["centered"] else [],
            [s["momentum_buffer"] for s in states] if group["momentum"] > 0 else [],
            lr=lr,
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=float(group["weight_decay"]),
            momentum=group["momentum"],
            centered=group["centered"],
            maximize=group["maximize"],
        )

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr, alpha, momentum = group["lr"], group["alpha"], group["momentum"]
        square_avg = state["square_avg"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            grad_avg = state["grad_avg"]
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = temporary(avg).add_(group["eps"])
        if momentum > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(momentum).addcdiv_(grad, avg)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, avg, value=-lr)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        RMSprop,
        params,
        grads,
        {
            "step": state_steps,
            "square_avg": square_avgs,
            "grad_avg": grad_avgs if centered else [],
            "momentum_buffer": momentum_buffer_list if momentum > 0 else [],
        },
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
    )
