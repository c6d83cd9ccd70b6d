"""Adam. https://arxiv.org/abs/1412.6980"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from . import _fused
from ._stateless import check_steps, step_all
from .optimizer import (
    ElementwiseOptimizer,
    ParamsT,
    check_betas,
    check_lr,
    check_not_negative,
    maximum_,
    square_root,
)

__all__ = ["Adam", "adam"]

_fused_adam_ = _fused.fused("_fused_adam_")
_fused_adamw_ = _fused.fused("_fused_adamw_")
_add_one_ = _fused.fused("_add_one_")


def _check_kinds_of_betas(betas: tuple, foreach: bool, capturable: bool) -> None:
    kinds = [isinstance(beta, Tensor) for beta in betas]
    if kinds[0] != kinds[1] or not all(isinstance(beta, (float, Tensor)) for beta in betas):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if foreach and not capturable:
            raise ValueError(
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


class Adam(ElementwiseOptimizer):
    """Steps of about ``lr`` whatever the gradient's scale. arXiv 1412.6980

        m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
        m_hat = m / (1 - beta1^t);  v_hat = v / (1 - beta2^t)
        p = p - lr m_hat / (sqrt(v_hat) + eps)

    The divisions by ``1 - beta^t`` undo that the means begin at zero.

    Args:
        params: tensors, pairs of names and tensors, or dicts that each make a group with options of
            its own.
        lr: the step size, 0.001 unless given; a number or a tensor of one element.
        betas: how much of the means of g and of g^2 stays.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient (L2).
        amsgrad: whether the largest v so far is used. arXiv 1904.09237
        decoupled_weight_decay: shrinks p directly instead, as `AdamW` does.
        maximize: goes up instead of down.
        foreach, capturable, differentiable, fused: how it is computed; ``differentiable`` records
            gradients through the step, the others change no results.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w**2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.7016], requires_grad=True)
    """

    _by_lists = True
    _tensor_state = ("exp_avg", "exp_avg_sq")
    _fused_takes_scaler = True
    _advice = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr, foreach, capturable)
        check_not_negative(eps, "epsilon value")
        check_betas(betas)
        _check_kinds_of_betas(betas, bool(foreach), capturable)
        check_not_negative(weight_decay, "weight_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        super()._init_state(state, p, group)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        function = _fused_adamw_ if group["decoupled_weight_decay"] else _fused_adam_
        beta1, beta2 = group["betas"]
        lr: Any = group["lr"]
        if type(lr) is not float:
            function, lr = _fused.with_rate(function, lr)
        # Betas on a device are read there by the tensor implementation alone.
        there = type(beta1) is not float and isinstance(beta1, Tensor) and beta1.is_cuda
        take = function is not None and (not there or group["fused"])
        grads = _fused.gradients(params, group) if take else None
        if grads is None:
            if not _fused.overflowed(self):
                super()._step_group(group, params)
            return
        states = [self._state_of(p, group) for p in params]
        steps = [s["step"] for s in states]
        found_inf = self.found_inf
        _add_one_(steps, found_inf=found_inf)
        function(
            params,
            grads,
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [],
            steps,
            lr=lr,
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=float(group["weight_decay"]),
            eps=group["eps"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
            grad_scale=self.grad_scale,
            found_inf=found_inf,
        )

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        lr, weight_decay = group["lr"], group["weight_decay"]
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(p, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = state["step"].item()
        step_size = lr / (1 - beta1**step)
        second_moment = exp_avg_sq
        if group["amsgrad"]:
            second_moment = state["max_exp_avg_sq"]
            maximum_(second_moment, exp_avg_sq)
        denom = (second_moment.sqrt() / square_root(1 - beta2**step)).add_(group["eps"])
        p.addcdiv_(exp_avg, denom, value=-step_size)


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam` by lists: parameters and state change in place."""
    check_steps(state_steps)
    if foreach and not fused and not capturable and isinstance(lr, Tensor):
        raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
    step_all(
        Adam,
        params,
        grads,
        {
            "step": state_steps,
            "exp_avg": exp_avgs,
            "exp_avg_sq": exp_avg_sqs,
            "max_exp_avg_sq": max_exp_avg_sqs if amsgrad else [],
        },
        betas=(beta1, beta2),
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=decoupled_weight_decay,
        amsgrad=amsgrad,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )
