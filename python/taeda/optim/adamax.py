"""Adamax. https://arxiv.org/abs/1412.6980"""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import (
    ElementwiseOptimizer,
    ParamsT,
    check_betas,
    check_lr,
    check_not_negative,
    maximum_,
)

__all__ = ["Adamax", "adamax"]


class Adamax(ElementwiseOptimizer):
    """`Adam` with a decayed maximum in place of the root of the mean square. arXiv 1412.6980

        m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + eps)
        p = p - lr / (1 - beta1^t) * m / u

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.002 unless given; a number or a tensor of one element.
        betas: how much of the mean and of the maximum stays.
        eps: added to the gradient's size.
        weight_decay: how much of the parameter is added to its gradient (L2).
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.7155], requires_grad=True)
    """

    _by_lists = True
    _tensor_state = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps, "epsilon value")
        check_betas(betas)
        check_not_negative(weight_decay, "weight_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_inf = state["exp_inf"].mul_(beta2)
        maximum_(exp_inf, grad.abs().add_(group["eps"]))
        step_size = group["lr"] / (1 - beta1 ** state["step"].item())
        p.addcdiv_(state["exp_avg"], exp_inf, value=-step_size)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of `Adamax` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        Adamax,
        params,
        grads,
        {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs},
        betas=(beta1, beta2),
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        eps=eps,
        lr=lr,
        weight_decay=weight_decay,
    )
