"""Adafactor: second moments of matrices by row and column. https://arxiv.org/abs/1804.04235"""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda import Tensor

from ._stateless import check_steps, step_all
from .optimizer import ElementwiseOptimizer, ParamsT

__all__ = ["Adafactor", "adafactor"]


@functools.cache
def _machine_epsilon(dtype: taeda.dtype) -> float:
    return taeda.finfo(dtype).eps


class Adafactor(ElementwiseOptimizer):
    """RMSprop with a mean square of rank one, and steps that are clipped. arXiv 1804.04235

        rho = min(lr, 1 / sqrt(t));  step = max(eps[1], rms(p)) rho
        R, C = running means of g^2 over columns and over rows, with 1 - t^beta2_decay
        u = g / sqrt(R C / mean(R));  p = p - step u / max(1, rms(u) / d)

    A matrix of n by m needs n + m numbers of state instead of n m; vectors keep all.

    Args:
        params: tensors, or dicts that each make a group with options of its own.
        lr: the largest relative step.
        beta2_decay: the power by which the means forget less and less.
        eps: the smallest mean square (None: machine epsilon) and the smallest rms of p.
        d: the largest root mean square of an update.
        weight_decay: shrinks p directly.
        foreach: changes no results.
        maximize: goes up instead of down.

    >>> layer = nn.Linear(4, 3)
    >>> optimizer = torch.optim.Adafactor(layer.parameters())
    >>> layer(torch.ones(2, 4)).sum().backward()
    >>> optimizer.step()
    >>> sorted(optimizer.state[layer.weight])
    ['col_var', 'row_var', 'step']
    """

    _by_lists_on_cuda = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        options = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if params[0].is_cuda:
            self._check_capture(group, params)
        super()._step_group(group, params)

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return super()._state_of(p, group)

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        grad: Any = p.grad
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = taeda.zeros_like(grad, memory_format=taeda.preserve_format)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        step, lr, (eps1, eps2) = state["step"].item(), group["lr"], group["eps"]
        eps1 = _machine_epsilon(p.dtype) if eps1 is None else eps1
        weight = step ** group["beta2_decay"]
        there = p.is_cuda  # where nobody waits for a number
        if there:
            alpha = (p.norm(2) / p.numel() ** 0.5).clamp_min(eps2)
            rate = 1 / step**0.5
            alpha *= lr.clamp_max(rate) if isinstance(lr, Tensor) else min(lr, rate)
        else:
            alpha = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            for average, dim in ((rows, -1), (columns, -2)):
                norms = taeda.norm(grad, dim=dim, keepdim=True)
                average.lerp_(norms.square_().div_(grad.size(dim)), weight)
            variance = (rows * columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(grad * grad, weight).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        if there:
            excess = update.norm(2) / (update.numel() ** 0.5 * group["d"])
            p.sub_(update.mul_(alpha / excess.clamp_min(1.0)))
        else:
            excess = update.norm(2).item() / (update.numel() ** 0.5 * group["d"])
            p.add_(update, alpha=-alpha / max(1.0, excess))


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor` by lists: parameters and state change in place."""
    check_steps(state_steps)
    step_all(
        Adafactor,
        params,
        grads,
        {"step": state_steps, "row_var": row_vars, "col_var": col_vars, "variance": variances},
        eps=(eps1, eps2),
        foreach=foreach,
        grad_scale=grad_scale,
        found_inf=found_inf,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        maximize=maximize,
    )
