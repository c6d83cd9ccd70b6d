"""Rprop: resilient backpropagation (Riedmiller & Braun, 1993)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import ElementwiseOptimizer, ParamsT, check_lr, number

__all__ = ["Rprop", "rprop"]


class Rprop(ElementwiseOptimizer):
    """Steps by the sign of the gradient, for full batches (Riedmiller and Braun 1993).

        size = size eta+ where the sign is the last one's, size eta- where it changed
        p = p - size sign(g)      (no step where it changed)

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the first size, 0.01 unless given.
        etas: the factors (eta-, eta+).
        step_sizes: the smallest and the largest size.
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Rprop([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.6360], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state["prev"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)
        lr = number(group["lr"])
        state["step_size"] = taeda.zeros_like(p).add_(lr * (1 + 1j) if p.is_complex() else lr)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        etaminus, etaplus = group["etas"]
        prev, step_size = state["prev"], state["step_size"]
        product = (grad * prev).detach()
        factor = taeda.ones_like(grad)
        factor.masked_fill_(product > 0, etaplus)
        factor.masked_fill_(product < 0, etaminus)
        step_size.mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(product < 0, 0)  # after a change of sign no step is made
        p.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)

    def _update_lists(
        self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """The same for lists, which have no masks: signs are factors."""
        (etaminus, etaplus), (least, most) = group["etas"], group["step_sizes"]
        prev, step_size = state["prev"], state["step_size"]
        sign = (grad * prev).sign_()
        rises, falls = sign.clamp_min(0), sign.clamp_max_(0)  # 1 and -1, else 0
        factor = rises.mul_(etaplus - 1).add_(falls, alpha=1 - etaminus).add_(1)
        step_size.mul_(factor).clamp_min_(least).clamp_max_(most)
        grad = falls.add_(1).mul_(grad)
        p.addcmul_(grad.sign(), step_size, value=-1)
        prev.fill_(0).add_(grad)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        Rprop,
        params,
        grads,
        {"step": state_steps, "prev": prevs, "step_size": step_sizes},
        etas=(etaminus, etaplus),
        step_sizes=(step_size_min, step_size_max),
        foreach=foreach,
        capturable=capturable,
        maximize=maximize,
        differentiable=differentiable,
    )
