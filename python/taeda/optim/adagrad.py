"""Adagrad (Duchi et al., 2011)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import (
    ElementwiseOptimizer,
    ParamsT,
    check_lr,
    check_not_negative,
    new_step,
    temporary,
)

__all__ = ["Adagrad", "adagrad"]


def _filled_like(p: Tensor, start: float) -> Tensor:
    """The first sum of squares; a complex parameter has one for each part of its numbers."""
    return taeda.full_like(p, complex(start, start) if p.is_complex() else start)


class Adagrad(ElementwiseOptimizer):
    """Steps divided by the root of the sum of all squares so far (Duchi et al. 2011).

        s = s + g^2
        p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)

    Rare features keep large steps; all steps shrink. Takes sparse gradients.

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.01 unless given; a number or a tensor of one element.
        lr_decay: how fast the rate falls besides.
        weight_decay: how much of the parameter is added to its gradient (L2).
        initial_accumulator_value: what s begins with.
        eps: added to the root.
        maximize: goes up instead of down.
        foreach, differentiable, fused: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.7805], requires_grad=True)
    """

    _by_lists = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(lr_decay, "lr_decay value")
        check_not_negative(weight_decay, "weight_decay value")
        check_not_negative(initial_accumulator_value, "initial_accumulator_value value")
        check_not_negative(eps, "epsilon value")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:  # the sums exist from the start
            for p in group["params"]:
                start = group["initial_accumulator_value"]
                step = new_step(p.device if group["fused"] else None)
                self.state[p] = {"step": step, "sum": _filled_like(p.detach(), start)}

    def share_memory(self) -> None:
        """Moves the state to shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state["sum"] = _filled_like(p, group["initial_accumulator_value"])

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(p, alpha=group["weight_decay"])
        lr = group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])
        if grad.is_sparse:
            self._update_rows(p, grad.coalesce(), state["sum"], lr, group["eps"])
            return
        state["sum"].addcmul_(grad, grad, value=1)
        p.addcdiv_(grad, temporary(state["sum"].sqrt()).add_(group["eps"]), value=-lr)

    @staticmethod
    def _update_rows(p: Tensor, grad: Tensor, total: Tensor, lr: float, eps: float) -> None:
        """The step where the gradient has values; elsewhere nothing changes."""
        total.add_(grad.pow(2))
        divisors = total.sparse_mask(grad)._values().sqrt().add_(eps)
        steps = grad._values() / divisors
        change = taeda.sparse_coo_tensor(grad._indices(), steps, grad.size(), is_coalesced=True)
        p.add_(change, alpha=-lr)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        Adagrad,
        params,
        grads,
        {"step": state_steps, "sum": state_sums},
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        foreach=foreach,
        differentiable=differentiable,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
    )
