"""Adadelta. https://arxiv.org/abs/1212.5701"""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative, temporary

__all__ = ["Adadelta"]


class Adadelta(ElementwiseOptimizer):
    """``p = p - lr d``, ``d = sqrt(u + eps) / sqrt(v + eps) g``; u, v running means of d^2, g^2."""

    _tensor_state = ("square_avg", "acc_delta")

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
