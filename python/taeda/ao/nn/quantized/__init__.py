"""Arithmetic as modules, for observers to hang on. Quantized layers raise when made."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor, _missing
from taeda.nn import Identity, Module


class FXFloatFunctional(Module):
    """Arithmetic of tensors as methods.

    >>> torch.ao.nn.quantized.FXFloatFunctional().add(torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            f"{type(self).__name__} is not intended to use the 'forward'. Please use the "
            "underlying operation"
        )

    def _observed(self, x: Tensor) -> Tensor:
        return x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y"""
        return self._observed(taeda.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y of a number, which nobody observes"""
        return taeda.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x y"""
        return self._observed(taeda.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x y of a number, which nobody observes"""
        return taeda.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Tensor:
        """The tensors of a list joined."""
        return self._observed(taeda.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)"""
        return self._observed(taeda.relu(taeda.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y"""
        return self._observed(taeda.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """`FXFloatFunctional` whose results its `activation_post_process` sees and may change."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _observed(self, x: Tensor) -> Tensor:
        return self.activation_post_process(x)


__getattr__, __dir__ = _missing.attributes(__name__)
