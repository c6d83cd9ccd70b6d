"""Fused layers that train with fake quantized weights.

A convolution followed by batch norm is quantized as one: its weight is scaled by the norm's
gamma / sqrt(running variance + eps) before it is rounded, the result divided by it again and
normalized (Krishnamoorthi, arXiv:1806.08342, 3.2.2).
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor, _missing, nn
from taeda.ao.nn import intrinsic, qat
from taeda.nn import functional as F


def _activated(cls: Any, mod: Any) -> Any:
    """A layer with an activation for the pair of both."""
    layer = mod[0]
    if not getattr(mod, "qconfig", None):
        raise AssertionError("Input float module must have a valid qconfig")
    made = cls(**cls._settings(layer), qconfig=mod.qconfig)
    made.weight, made.bias = layer.weight, layer.bias
    return made


def _with_relu(name: str, base: Any, pair: Any) -> Any:
    def forward(self: Any, input: Tensor) -> Tensor:
        return F.relu(base.forward(self, input))

    body = {
        "_FLOAT_MODULE": pair,
        "__doc__": f"relu of `qat.{base.__name__}`.",
        "__module__": __name__,
        "forward": forward,
        "from_float": classmethod(lambda cls, mod, use_precomputed=False: _activated(cls, mod)),
    }
    return type(name, (base,), body)


for _base, _n in ((qat.Conv1d, 1), (qat.Conv2d, 2), (qat.Conv3d, 3)):
    globals()[f"ConvReLU{_n}d"] = _with_relu(
        f"ConvReLU{_n}d", _base, getattr(intrinsic, f"ConvReLU{_n}d")
    )
LinearReLU = _with_relu("LinearReLU", qat.Linear, intrinsic.LinearReLU)


class _ConvBn(nn.Module):
    """Mixed into a convolution: the batch norm behind it is part of the weight that is rounded."""

    _BN: Any
    bn: Any
    weight_fake_quant: Any

    def _add_bn(self, bn: Any, qconfig: Any, freeze_bn: bool) -> None:
        self.qconfig, self.bn, self.freeze_bn = qconfig, bn, freeze_bn
        self.weight_fake_quant = qconfig.weight()
        if freeze_bn:
            self.freeze_bn_stats()

    def _normalized(self, input: Tensor) -> Tensor:
        """bn(conv(x)), where the weight is rounded as the norm scales it."""
        own: Any = self
        scale = own.bn.weight / taeda.sqrt(own.bn.running_var + own.bn.eps)
        weight = own.weight
        shape = [1] * weight.dim()
        scaled = own.weight_fake_quant(weight * scale.reshape([-1, *shape[1:]]))
        zeros = None if own.bias is None else taeda.zeros_like(own.bias)
        y = own._conv_forward(input, scaled, zeros)
        y = y / scale.reshape([1, -1, *shape[2:]])
        if own.bias is not None:
            y = y + own.bias.reshape([1, -1, *shape[2:]])
        return own.bn(y)

    def forward(self, input: Tensor) -> Tensor:
        return self._normalized(input)

    def reset_running_stats(self) -> None:
        """Forgets the norm's running averages."""
        self.bn.reset_running_stats()

    def update_bn_stats(self) -> Any:
        """The norm uses and updates its batches' statistics again."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """The norm uses its running averages from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """As of all modules; a frozen norm stays so."""
        super().train(mode)
        if self.freeze_bn:
            self.bn.training = False
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a fused pair, whose parameters and norm it takes over."""
        conv, bn = mod[0], mod[1]
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        made = cls.__new__(cls)
        kind: Any = next(c for c in cls.__mro__ if c in (nn.Conv1d, nn.Conv2d, nn.Conv3d))
        kind.__init__(made, **qat._Conv._settings.__func__(cls, conv))  # type: ignore[attr-defined]
        made.weight, made.bias = conv.weight, conv.bias
        made._add_bn(bn, mod.qconfig, False)
        made.train(mod.training)
        return made


class _ConvBnReLU(_ConvBn):
    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._normalized(input))


def _with_norm(name: str, mixin: Any, conv: Any, norm: Any) -> Any:
    def __init__(
        self: Any, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool | None = None,
        padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        conv.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            bool(bias), padding_mode,
        )  # fmt: skip
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self._add_bn(norm(out_channels, eps, momentum), qconfig, freeze_bn)

    doc = f"{conv.__name__} and batch norm, quantized as one."
    body = {"__init__": __init__, "__doc__": doc, "__module__": __name__}
    return type(name, (mixin, conv), body)


for _n in (1, 2, 3):
    _kinds = getattr(nn, f"Conv{_n}d"), getattr(nn, f"BatchNorm{_n}d")
    globals()[f"ConvBn{_n}d"] = _with_norm(f"ConvBn{_n}d", _ConvBn, *_kinds)
    globals()[f"ConvBnReLU{_n}d"] = _with_norm(f"ConvBnReLU{_n}d", _ConvBnReLU, *_kinds)


def update_bn_stats(mod: Any) -> None:
    """For `Module.apply`: norms of fused layers use their batches' statistics."""
    if isinstance(mod, _ConvBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """For `Module.apply`: norms of fused layers use their running averages."""
    if isinstance(mod, _ConvBn):
        mod.freeze_bn_stats()


__getattr__, __dir__ = _missing.attributes(__name__)
