"""Layers that are one to quantization: a convolution, its batch norm and its activation."""

from __future__ import annotations

import importlib
from typing import Any

from taeda import _missing, nn


class _FusedModule(nn.Sequential):
    """Layers of given types, one after the other."""

    _TYPES: tuple[Any, ...] = ()

    def __init__(self, *layers: Any) -> None:
        for layer, kind in zip(layers, self._TYPES, strict=True):
            if not isinstance(layer, kind):
                given = ", ".join(type(each).__name__ for each in layers)
                raise AssertionError(f"Incorrect types for input modules {given}")
        super().__init__(*layers)


def _fused(name: str, *types: Any) -> Any:
    kinds = ", ".join(kind.__name__ for kind in types)
    body = {"_TYPES": types, "__doc__": f"{kinds}, one after the other.", "__module__": __name__}
    return type(name, (_FusedModule,), body)


ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)


def __getattr__(name: str) -> Any:
    if name == "qat":
        return importlib.import_module(f"{__name__}.qat")
    return _missing.attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "qat", *_missing.names(__name__)})
