"""Fake quantization as modules: an observer, and rounding with what it chose.

>>> from torch.ao.quantization import FakeQuantize
>>> fake = FakeQuantize(dtype=torch.quint8, quant_min=0, quant_max=255)
>>> fake(torch.tensor([0., 0.31, 2.55]))
tensor([0.0000, 0.3100, 2.5500])
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor, _missing
from taeda.nn import Module

from ._ranges import PER_CHANNEL, PER_TENSOR, SYMMETRIC, full_range
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    resize_as_saved,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


class FakeQuantizeBase(Module):
    """What all fake quantization is: `fake_quant_enabled` and `observer_enabled` switch its parts,
    `forward` rounds, `calculate_qparams` gives the scale and zero point."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self._add_switches(taeda.uint8)

    def _add_switches(self, dtype: Any) -> None:
        self.register_buffer("fake_quant_enabled", taeda.tensor([1], dtype=dtype))
        self.register_buffer("observer_enabled", taeda.tensor([1], dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: forward is not defined")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}: calculate_qparams is not defined")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Rounds from now on, or no longer."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Rounds no longer."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Observes from now on, or no longer."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Observes no longer."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Observes tensors and rounds them to what the integers stand for that the observer chose.

    Args:
        observer: the observer's class, or `with_args` of it.
        quant_min, quant_max: the integers' range.
        observer_kwargs: other arguments of the observer.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", taeda.quint8)
            dtype = getattr(getattr(observer, "p", None), "keywords", {}).get("dtype", dtype)
            low, high = full_range(dtype)
            if low > quant_min or quant_max > high:
                end = "quant_min" if low > quant_min else "quant_max"
                raise AssertionError(f"{end} out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        own = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = (
            own.quant_min, own.quant_max, own.is_dynamic
        )  # fmt: skip
        self.dtype, self.qscheme, self.ch_axis = own.dtype, own.qscheme, getattr(own, "ch_axis", -1)
        is_float = self.qscheme == taeda.per_channel_affine_float_qparams
        point = taeda.float32 if is_float else taeda.int32
        self.register_buffer("scale", taeda.tensor([1.0], dtype=taeda.float32))
        self.register_buffer("zero_point", taeda.tensor([0], dtype=point))
        self.is_per_channel = self.qscheme in PER_CHANNEL

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """What the observer chooses now."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        """Observes and rounds, as the switches say."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            for own, chosen in zip((self.scale, self.zero_point), self.calculate_qparams()):
                if own.shape != chosen.shape:
                    own.resize_(chosen.shape)
                own.copy_(chosen)
        if self.fake_quant_enabled[0] != 1:
            return X
        own = self.activation_post_process
        ends = (own.quant_min, own.quant_max)
        if self.is_per_channel:
            return taeda.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *ends
            )
        return taeda.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *ends)

    def extra_repr(self) -> str:
        own = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={own.quant_min}, "
            f"quant_max={own.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _scale_first(self) -> str:
        """`extra_repr` of the kinds that name the scale before the range."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        resize_as_saved(self, state_dict, prefix, ("scale", "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale and a zero point that are known beforehand."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                "FixedQParamsFakeQuantize's observer must be a FixedQParamsObserver"
            )
        if self.qscheme not in PER_TENSOR:
            raise AssertionError(
                "Only per tensor quantization is supported FixedQParamsFakeQuantize module, got "
                f"qscheme:{self.qscheme}"
            )
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The scale and the zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        return self._scale_first()


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with a moving average, in one function."""

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        kinds = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, kinds):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver"
            )
        self._add_switches(taeda.int64)
        self.is_symmetric_quant = self.activation_post_process.qscheme in SYMMETRIC

    def forward(self, X: Tensor) -> Tensor:
        """Observes and rounds, as the switches say."""
        own = self.activation_post_process
        return taeda.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, own.min_val, own.max_val,
            self.scale, self.zero_point, own.averaging_constant, own.quant_min, own.quant_max,
            self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{self._scale_first()}, reduce_range={self.activation_post_process.reduce_range}"


_BYTE = {"quant_min": 0, "quant_max": 255, "dtype": taeda.quint8}
_SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": taeda.qint8}
_NARROW = {"quant_min": -127, "quant_max": 127, "dtype": taeda.qint8, "eps": 2**-12}
_TENSOR = {"observer": MovingAverageMinMaxObserver}
_CHANNEL = {"observer": MovingAveragePerChannelMinMaxObserver}
_AFFINE = {"qscheme": taeda.per_tensor_affine, "reduce_range": True}
_EVEN = {"qscheme": taeda.per_tensor_symmetric}
_EVEN_CHANNEL = {"qscheme": taeda.per_channel_symmetric}

default_fake_quant = FakeQuantize.with_args(**_TENSOR, **_BYTE, **_AFFINE)
default_weight_fake_quant = FakeQuantize.with_args(
    **_TENSOR, **_SIGNED, **_EVEN, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    **_TENSOR, **_BYTE, is_dynamic=True, averaging_constant=1
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_CHANNEL, **_SIGNED, **_EVEN_CHANNEL, reduce_range=False, ch_axis=0
)
_EMBEDDING = {
    **_CHANNEL,
    "qscheme": taeda.per_channel_affine_float_qparams,
    "ch_axis": 0,
    "averaging_constant": 1,
}
default_embedding_fake_quant = FakeQuantize.with_args(**_EMBEDDING, **_BYTE)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(**_EMBEDDING, dtype=taeda.quint4x2)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTE, **_AFFINE
)
_fused = FusedMovingAvgObsFakeQuantize.with_args
default_fused_act_fake_quant = _fused(**_TENSOR, **_BYTE)
default_fused_wt_fake_quant = _fused(**_TENSOR, **_SIGNED, **_EVEN)
default_fused_per_channel_wt_fake_quant = _fused(**_CHANNEL, **_SIGNED, **_EVEN_CHANNEL)
fused_wt_fake_quant_range_neg_127_to_127 = _fused(**_TENSOR, **_NARROW, **_EVEN)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = _fused(
    **_CHANNEL, **_NARROW, **_EVEN_CHANNEL
)


def disable_fake_quant(mod: Module) -> None:
    """For `Module.apply`: fake quantization rounds no longer."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Module) -> None:
    """For `Module.apply`: fake quantization rounds."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Module) -> None:
    """For `Module.apply`: fake quantization observes no longer."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Module) -> None:
    """For `Module.apply`: fake quantization observes."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


__getattr__, __dir__ = _missing.attributes(__name__)
