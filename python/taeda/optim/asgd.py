"""Averaged stochastic gradient descent (Polyak & Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, check_not_negative, number

__all__ = ["ASGD", "asgd"]


def _at_least_one(x: Any) -> Any:
    if isinstance(x, float):
        return x if x > 1 else 1
    return x.clamp_min(1)


class ASGD(ElementwiseOptimizer):
    """SGD, and the average of the parameters it visits (Polyak and Juditsky 1992).

        eta_t = lr / (1 + lambd lr t)^alpha
        p = p (1 - lambd eta) - eta g
        ax = ax + mu (p - ax),  mu = 1 / max(1, t - t0)

    The average is ``optimizer.state[p]["ax"]``.

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.01 unless given; a number or a tensor of one element.
        lambd: the decay of parameters and rate.
        alpha: the power by which the rate falls.
        t0: the step at which averaging begins.
        weight_decay: how much of the parameter is added to its gradient (L2).
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.ASGD([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.5120], requires_grad=True)
    """

    _captured = "params, mus, etas, and state_steps"

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
        state["eta"] = taeda.zeros((), dtype=taeda.float32, device=p.device)
        state["eta"].add_(number(group["lr"]))
        state["mu"] = taeda.ones((), dtype=taeda.float32, device=p.device)
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
        state["mu"].fill_(1 / _at_least_one(step - group["t0"]))


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        ASGD,
        params,
        grads,
        {"step": state_steps, "ax": axs, "mu": mus, "eta": etas},
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
    )
