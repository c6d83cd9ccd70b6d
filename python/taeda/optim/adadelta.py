"""Adadelta. https://arxiv.org/abs/1212.5701"""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative, temporary

__all__ = ["Adadelta", "adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Steps in the units of the parameters, without a rate to choose. arXiv 1212.5701

        v = rho v + (1 - rho) g^2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho u + (1 - rho) d^2
        p = p - lr d

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 1 unless given; a number or a tensor of one element.
        rho: how much of the mean squares stays.
        eps: added inside of the roots; larger ones begin faster.
        weight_decay: how much of the parameter is added to its gradient (L2).
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.9903], requires_grad=True)
    """

    _by_lists = True
    _tensor_state = ("square_avg", "acc_delta")
    _captured_on_xla = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps, "epsilon value")
        check_not_negative(weight_decay, "weight_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = state["square_avg"].add(eps).sqrt_()
        delta = temporary(state["acc_delta"].add(eps).sqrt_()).div_(std)
        delta = temporary(delta).mul_(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-group["lr"])


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        Adadelta,
        params,
        grads,
        {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas},
        capturable=capturable,
        foreach=foreach,
        differentiable=differentiable,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )
