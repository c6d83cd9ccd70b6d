"""Where numbers enter and leave the quantized part of a model."""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda.nn import Module


class _Boundary(Module):
    """Returns its input; `prepare` and `convert` put something in its place."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantStub(_Boundary):
    """Observes what enters. `prepare` gives it the observer of its QConfig."""


class DeQuantStub(_Boundary):
    """Marks where numbers leave."""


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    quant: QuantStub
    dequant: DeQuantStub
    module: Module

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))
