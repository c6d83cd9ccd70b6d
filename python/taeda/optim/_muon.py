"""Muon: momentum orthogonalized by Newton-Schulz iterations. https://kellerjordan.github.io/posts/muon/"""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from ._stateless import step_all
from .optimizer import ElementwiseOptimizer, ParamsT

__all__ = ["Muon"]


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Tensor:
    """A matrix with the singular vectors of `grad` and singular values near 1, in bfloat16.

    Each step applies ``a x + b x^3 + c x^5`` to the singular values.
    """
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    is_tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16().clone()
    x = x.T if is_tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        update = taeda.addmm(gram, gram, gram, beta=b, alpha=c)
        x = taeda.addmm(x, update, x, beta=a)
    return x.T if is_tall else x


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Any) -> float:
    rows, columns = param_shape[:2]
    if adjust_lr_fn == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr * math.sqrt(max(1, rows / columns))


class Muon(ElementwiseOptimizer):
    """Steps along the nearest orthogonal matrix to the momentum; for matrices only.

        v = momentum v + (1 - momentum) g
        p = p (1 - lr weight_decay) - lr' orthogonalized(v)

    The orthogonal factor comes from a few Newton-Schulz iterations in bfloat16. Use it for the
    weight matrices of hidden layers, and AdamW for the rest.

    Args:
        params: matrices, or dicts that each make a group with options of its own.
        lr: the step size.
        weight_decay: shrinks p directly.
        momentum, nesterov: as in `SGD`.
        ns_coefficients, ns_steps: of the iteration's polynomial, and how many.
        eps: the smallest norm that the momentum is divided by.
        adjust_lr_fn: how the rate grows with the sizes: "original" (Jordan), ``sqrt(max(1, rows /
            columns))``, or "match_rms_adamw" (Moonshot), ``0.2 sqrt(max(rows, columns))``.

    >>> w = torch.eye(2).requires_grad_()
    >>> optimizer = torch.optim.Muon([w], lr=0.1, weight_decay=0.0)
    >>> (w * torch.tensor([[2.0, 0.0], [0.0, 1.0]])).sum().backward()
    >>> optimizer.step()
    >>> bool(w[0, 0] < 1) and bool(w[1, 1] < 1)
    True
    """

    _tensor_state = ("momentum_buffer",)
    _counts_steps = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, options)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return super()._state_of(p, group)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        momentum = group["momentum"]
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = _zeropower_via_newtonschulz(
            grad.lerp(buffer, momentum) if group["nesterov"] else buffer,
            group["ns_coefficients"],
            group["ns_steps"],
            group["eps"],
        )
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.add_(update, alpha=-_adjust_lr(group["lr"], group["adjust_lr_fn"], p.shape))


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon` by lists: parameters and state change in place."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    step_all(
        Muon,
        params,
        grads,
        {"momentum_buffer": muon_momentum_bufs},
        foreach=foreach,
        lr=lr,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        ns_coefficients=ns_coefficients,
        ns_steps=ns_steps,
        eps=eps,
        adjust_lr_fn=adjust_lr_fn,
    )
