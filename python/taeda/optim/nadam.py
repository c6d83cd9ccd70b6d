"""NAdam: Adam with Nesterov momentum (Dozat, 2016)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import (
    ElementwiseOptimizer,
    ParamsT,
    check_betas,
    check_lr,
    check_not_negative,
    on_device,
    temporary,
)

__all__ = ["NAdam", "nadam"]


class NAdam(ElementwiseOptimizer):
    """`Adam` that looks ahead, as Nesterov's momentum does (Dozat 2016).

        mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2)
        m_hat = mu_(t+1) m / (1 - prod of mu up to t + 1) + (1 - mu_t) g / (1 - prod of mu up to t)
        p = p - lr m_hat / (sqrt(v_hat) + eps)

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.002 unless given; a number or a tensor of one element.
        betas: how much of the means of g and of g^2 stays.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient (L2).
        momentum_decay: how fast mu grows to beta1.
        decoupled_weight_decay: shrinks p directly instead, as `AdamW` does.
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.7527], requires_grad=True)
    """

    _tensor_state = ("exp_avg", "exp_avg_sq")
    _captured = "params, mu_products and state_steps"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps, "epsilon value")
        check_betas(betas)
        check_not_negative(weight_decay, "weight_decay value")
        check_not_negative(momentum_decay, "momentum_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        device = p.device if on_device(group) else "cpu"
        state["mu_product"] = taeda.ones((), dtype=taeda.float32, device=device)
        super()._init_state(state, p, group)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        lr, weight_decay = group["lr"], group["weight_decay"]
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        step = state["step"].item()
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(p, alpha=weight_decay)
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        state["mu_product"] *= mu
        mu_product = state["mu_product"].item()
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = temporary(exp_avg_sq.div(1 - beta2**step).sqrt()).add_(group["eps"])
        p.addcdiv_(grad, denom, value=-lr * (1.0 - mu) / (1.0 - mu_product))
        p.addcdiv_(exp_avg, denom, value=(-lr * mu_next) / (1.0 - mu_product * mu_next))


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        NAdam,
        params,
        grads,
        {
            "step": state_steps,
            "exp_avg": exp_avgs,
            "exp_avg_sq": exp_avg_sqs,
            "mu_product": mu_products,
        },
        betas=(beta1, beta2),
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        maximize=maximize,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
    )
