"""Layers whose weights are fake quantized in every call, for training."""

from __future__ import annotations

from typing import Any

from taeda import Tensor, _missing, nn
from taeda.nn import functional as F


class _FakeQuantizedWeight:
    """Mixed into a layer: `qconfig` makes the fake quantization of its weight."""

    _FLOAT_MODULE: Any
    weight_fake_quant: Any
    qconfig: Any

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        options = {k: v for k, v in kwargs.items() if k in ("device", "dtype") and v is not None}
        self.weight_fake_quant = qconfig.weight(factory_kwargs=options or None)

    @classmethod
    def _settings(cls, mod: Any) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a layer without fake quantization, whose parameters it takes over."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}"
            )
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        made = cls(**cls._settings(mod), qconfig=mod.qconfig)
        made.weight, made.bias = mod.weight, mod.bias  # type: ignore[attr-defined]
        return made

    def to_float(self) -> Any:
        """The layer without fake quantization."""
        made = self._FLOAT_MODULE(**self._settings(self))
        made.weight = nn.Parameter(self.weight.detach())  # type: ignore[attr-defined]
        bias = self.bias  # type: ignore[attr-defined]
        if bias is not None:
            made.bias = nn.Parameter(bias.detach())
        return made


class Linear(_FakeQuantizedWeight, nn.Linear):
    """`nn.Linear` with a fake quantized weight."""

    _FLOAT_MODULE = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_features, out_features, bias, qconfig=qconfig, device=device, dtype=dtype
        )

    @classmethod
    def _settings(cls, mod: Any) -> dict[str, Any]:
        sizes = {name: getattr(mod, name) for name in ("in_features", "out_features")}
        return {**sizes, "bias": mod.bias is not None}

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)


_CONVOLUTION = (
    "in_channels out_channels kernel_size stride padding dilation groups padding_mode"
).split()


class _Conv(_FakeQuantizedWeight):
    """Of a convolution: its arguments, and the weight it convolves with."""

    @classmethod
    def _settings(cls, mod: Any) -> dict[str, Any]:
        settings = {name: getattr(mod, name) for name in _CONVOLUTION}
        return {**settings, "bias": mod.bias is not None}

    def forward(self, input: Tensor) -> Tensor:
        weight = self.weight_fake_quant(self.weight)  # type: ignore[attr-defined]
        return self._conv_forward(input, weight, self.bias)  # type: ignore[attr-defined]


class Conv1d(_Conv, nn.Conv1d):
    """`nn.Conv1d` with a fake quantized weight."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """`nn.Conv2d` with a fake quantized weight."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """`nn.Conv3d` with a fake quantized weight."""

    _FLOAT_MODULE = nn.Conv3d


class Embedding(_FakeQuantizedWeight, nn.Embedding):
    """`nn.Embedding` with a fake quantized table."""

    _FLOAT_MODULE = nn.Embedding
    bias = None

    @classmethod
    def _settings(cls, mod: Any) -> dict[str, Any]:
        names = "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq"
        return {name: getattr(mod, name) for name in (*names.split(), "sparse")}

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm,
            self.norm_type, self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip


__getattr__, __dir__ = _missing.attributes(__name__)
