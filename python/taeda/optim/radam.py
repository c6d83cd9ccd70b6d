"""RAdam: Adam with a rectified start. https://arxiv.org/abs/1908.03265"""

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
    temporary,
)

__all__ = ["RAdam", "radam"]


class RAdam(ElementwiseOptimizer):
    """`Adam` that trusts the second moment only once its variance is bounded. arXiv 1908.03265

        rho_t = rho - 2 t beta2^t / (1 - beta2^t),  rho = 2 / (1 - beta2) - 1
        p = p - lr m_hat r_t / sqrt(v_hat) where rho_t > 5, else p - lr m_hat

    The factor r_t corrects the variance of the adaptive rate; early steps are those of momentum, so
    that no warm-up is needed.

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.001 unless given; a number or a tensor of one element.
        betas: how much of the means of g and of g^2 stays.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient (L2).
        decoupled_weight_decay: shrinks p directly instead, as `AdamW` does.
        maximize: goes up instead of down.
        foreach, capturable, differentiable: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.4623], requires_grad=True)
    """

    _tensor_state = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

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
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2 = 1 - beta2**step
        update = exp_avg / (1 - beta1**step) * lr
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * (beta2**step) / correction2
        if rho > 5.0:
            variance = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
            adaptive = correction2**0.5 / temporary(exp_avg_sq.sqrt()).add_(group["eps"])
            update = update * adaptive * variance**0.5
        p.add_(update, alpha=-1.0)

    def _update_lists(
        self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """What is chosen by the number of steps is so by arithmetic where a device has that."""
        if not state["step"].is_cuda:
            self._update(p, grad, state, group)
            return
        (beta1, beta2), lr = group["betas"], group["lr"]
        step, exp_avg, exp_avg_sq = state["step"].item(), state["exp_avg"], state["exp_avg_sq"]
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2, rho_inf = 1 - beta2**step, 2 / (1 - beta2) - 1
        rho = (step / correction2 - step) * -2 + rho_inf
        rectified = (rho - 5).sign().clamp_min(0)
        scale = rho_inf / ((rho_inf - 4) * (rho_inf - 2))
        variance = ((rho - 4) * (rho - 2) / rho * scale).clamp_min(0)
        factor = exp_avg_sq.sqrt().add_(group["eps"]).reciprocal_()
        factor.mul_((variance * correction2).sqrt() * rectified).add_(1 - rectified)
        p.sub_((exp_avg / (1 - beta1**step) * lr).mul_(factor))


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        RAdam,
        params,
        grads,
        {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs},
        betas=(beta1, beta2),
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
    )
