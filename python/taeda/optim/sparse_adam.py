"""Adam for sparse gradients: only what has a gradient moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .optimizer import GroupwiseOptimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(GroupwiseOptimizer):
    """`Adam` whose moments and parameters change only where a sparse gradient has values.

    For large tables of which a step reads a few rows (`Embedding` with ``sparse=True``): the rows
    that it did not read keep their moments, which in Adam decay.

    Args:
        params: dense parameters, whose gradients are torch.sparse_coo tensors.
        lr: the step size.
        betas: how fast the averages of gradients and of their squares forget.
        eps: added to the square root.
        maximize: goes up instead of down.

    >>> table = nn.Embedding(4, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> optimizer = torch.optim.SparseAdam(table.parameters())
    >>> table(torch.tensor([1, 3])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight != before).any(1)
    tensor([False,  True, False,  True])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        if sparse := self._indices(lambda p: p.is_sparse):
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        if complex_ := self._indices(lambda p: p.is_complex()):
            raise ValueError(
                f"Complex params at indices {complex_}: SparseAdam does not support complex "
                "parameters"
            )

    def _indices(self, wanted: Callable[[Tensor], bool]) -> list[list[int]]:
        """[group, index in it] of the parameters that are `wanted`."""
        return [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if wanted(p)
        ]

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        for p in params:
            self._move(p, group)

    def _move(self, p: Tensor, group: dict[str, Any]) -> None:
        gradient: Any = p.grad
        if not gradient.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)
            state["exp_avg_sq"] = taeda.zeros_like(p, memory_format=taeda.preserve_format)
        state["step"] += 1
        grad = -gradient if group["maximize"] else gradient
        moments = state["exp_avg"], state["exp_avg_sq"]
        lr, betas, eps = float(group["lr"]), group["betas"], group["eps"]
        update(p, grad, *moments, state["step"], betas=betas, lr=lr, eps=eps)


def update(
    p: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    *,
    betas: tuple[float, float],
    lr: float,
    eps: float,
) -> None:
    """Moves one parameter and its moments where the gradient has values; `step` counts from 1."""
    grad = grad.coalesce()
    if grad._nnz() == 0:
        return
    beta1, beta2 = betas
    average = _averaged(exp_avg, grad, grad._values(), beta1)
    square = _averaged(exp_avg_sq, grad, grad._values() ** 2, beta2)
    size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    p.add_(_at(grad, average / (square.sqrt() + eps)), alpha=-size)


def _at(grad: Tensor, values: Tensor) -> Tensor:
    """Values where the gradient has its own."""
    return taeda.sparse_coo_tensor(grad._indices(), values, grad.size(), is_coalesced=True)


def _averaged(average: Tensor, grad: Tensor, values: Tensor, beta: float) -> Tensor:
    """Moves `average` towards `values` where the gradient has values; what stands there then."""
    old = average.sparse_mask(grad)._values()
    change = (values - old) * (1 - beta)
    average.add_(_at(grad, change))
    return old + change
