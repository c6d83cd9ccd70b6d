"""Averaged stochastic gradient descent (Polyak & Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative, number

__all__ = ["ASGD"]


class ASGD(ElementwiseOptimizer):
    """SGD with steps ``eta_t = lr / (1 + lambd lr t)^alpha``; ``ax`` averages p from ``t0`` on."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay, "weight_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state["eta"] = taeda.tensor(number(group["lr"]), dtype=taeda.float32)
        state["mu"] = taeda.ones((), dtype=taeda.float32)
        state["ax"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lambd, lr, ax = group["lambd"], group["lr"], state["ax"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        eta, mu = state["eta"].item(), state["mu"].item()
        p.mul_(1 - lambd * eta)
        p.add_(grad, alpha=-eta)
        if mu != 1:
            ax.add_(p.sub(ax).mul_(mu))
        else:
            ax.copy_(p)
        step = state["step"].item()
        state["eta"].fill_(lr / ((1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
