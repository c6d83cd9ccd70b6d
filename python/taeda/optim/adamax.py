"""Adamax. https://arxiv.org/abs/1412.6980"""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from .optimizer import (
    ElementwiseOptimizer,
    ParamsT,
    check_betas,
    check_lr,
    check_not_negative,
    maximum_,
)

__all__ = ["Adamax"]


class Adamax(ElementwiseOptimizer):
    """Adam with the largest decayed ``|g| + eps`` in place of the root of the mean square."""

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
