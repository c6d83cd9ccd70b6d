"""Observers: modules that see numbers pass and choose scales and zero points for them.

>>> from torch.ao.quantization import MinMaxObserver
>>> observer = MinMaxObserver()
>>> _ = observer(torch.tensor([-1., 0., 2.]))
>>> observer.calculate_qparams()
(tensor([0.0118]), tensor([85], dtype=torch.int32))
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

import taeda
from taeda import Tensor, _missing
from taeda.nn import Module

from ._ranges import PER_CHANNEL, PER_TENSOR, SYMMETRIC, chosen_range, is_allowed, name_of

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

_Parameters = tuple[Tensor, Tensor]
_EPS = float(taeda.finfo(taeda.float32).eps)
#: What observers of PyTorch's checkpoints call the range of a channel.
_OLD_NAMES = {"min_vals": "min_val", "max_vals": "max_val"}


class _PartialWrapper:
    """A constructor with some of its arguments: ``Observer.with_args(dtype=...)``."""

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **{**made, **kwargs})

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with more arguments."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with arguments that are computed when an object is made."""
        result = _PartialWrapper(self.p)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(Module):
    """What all observers are: `forward` looks at a tensor and returns it, `calculate_qparams`
    gives the scale and zero point for what was seen."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: forward is not defined")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}: calculate_qparams is not defined")

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of a minimum and a maximum, between which integers stand for equal steps.

    Args:
        dtype: the integers' dtype, such as ``torch.quint8``.
        qscheme: ``torch.per_tensor_affine``, ``torch.per_channel_symmetric``, ...
        reduce_range: one bit less than the dtype has.
        quant_min, quant_max: the integers' range; the dtype's without.
        eps: the least scale.
    """

    _version = 3
    eps: Tensor

    def __init__(
        self,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype, is_dynamic, **kwargs)
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. "
                "reduce_range will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        if qscheme not in PER_TENSOR + PER_CHANNEL:
            raise AssertionError(f"{type(self).__name__}: no quantization scheme {qscheme}")
        if not is_allowed(dtype):
            raise AssertionError(f"{type(self).__name__}: observes no data of type {dtype}")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", taeda.tensor([eps], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        self.quant_min, self.quant_max = chosen_range(dtype, quant_min, quant_max, reduce_range)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> _Parameters:
        """The scale and zero point by which a range, and 0, fits the integers'."""
        if not _is_seen(min_val, max_val):
            device = min_val.device
            return taeda.tensor([1.0], device=device), taeda.tensor([0], device=device)
        low, high = self.quant_min, self.quant_max
        zero = taeda.zeros_like(min_val)
        least, most = taeda.minimum(min_val, zero), taeda.maximum(max_val, zero)
        if self.qscheme in SYMMETRIC:
            scale = taeda.maximum(-least, most) / (float(high - low) / 2)
            scale = taeda.maximum(scale, self.eps)
            point = taeda.full(scale.shape, self._middle(), dtype=taeda.int64, device=scale.device)
        elif self.qscheme == taeda.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / float(high - low)
            scale = taeda.where(scale > self.eps, scale, taeda.ones_like(scale))
            point = -1 * min_val / scale
        else:
            scale = taeda.maximum((most - least) / float(high - low), self.eps)
            point = (low - taeda.round(least / scale).to(taeda.int32)).clamp(low, high)
        return scale.reshape(scale.shape or (1,)), point.reshape(point.shape or (1,))

    def _middle(self) -> int:
        """The integer that stands for 0 in a symmetric scheme."""
        name = name_of(self.dtype)
        if name in ("quint8", "uint8"):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if name == "uint16" else 0

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


def _is_seen(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether a range was observed; AssertionError where it is upside down."""
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.",
            stacklevel=3,
        )
        return False
    if min_val.dim() == 0 or max_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.",
                stacklevel=3,
            )
            return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def resize_as_saved(module: Module, state: Any, prefix: str, names: Sequence[str]) -> None:
    """Gives buffers the shapes of what a state dict has of them, before it is copied there."""
    for name in names:
        saved = state.get(prefix + name)
        if saved is not None:
            getattr(module, name).resize_(saved.shape)


class _RangeObserver(UniformQuantizationObserverBase):
    """The least and the largest number seen: one of each, or one for each index of a dimension."""

    min_val: Tensor
    max_val: Tensor

    def _refuse_reduced_bytes(self, symmetric: Any) -> None:
        if self.reduce_range and self.qscheme == symmetric and name_of(self.dtype) == "quint8":
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def _see(self, least: Tensor, most: Tensor) -> None:
        self.min_val.copy_(taeda.minimum(least, self.min_val))
        self.max_val.copy_(taeda.maximum(most, self.max_val))

    def calculate_qparams(self) -> _Parameters:  # type: ignore[override]
        """The scales and the zero points for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(_RangeObserver):
    """The least and the largest of all numbers seen."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        factory = kwargs.get("factory_kwargs") or {}
        super().__init__(*args, **kwargs)
        if self.qscheme not in PER_TENSOR:
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric "
                "and torch.per_tensor_affine."
            )
        self.register_buffer("min_val", taeda.tensor(float("inf"), **factory))
        self.register_buffer("max_val", taeda.tensor(float("-inf"), **factory))
        self._refuse_reduced_bytes(taeda.per_tensor_symmetric)

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at `x_orig` and returns it."""
        if x_orig.numel():
            least, most = taeda.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._see(least, most)
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moving averages of the least and the largest number of each tensor seen.

    Args:
        averaging_constant: how far the averages move towards each new range.
    """

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **kwargs: Any) -> None:
        self_scheme = kwargs.get("qscheme", taeda.per_tensor_affine)
        if self_scheme not in PER_TENSOR:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver's qscheme only support torch.per_tensor_symmetric "
                f"and torch.per_tensor_affine, but got: {self_scheme}"
            )
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant
        if self.is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )

    def _see(self, least: Tensor, most: Tensor) -> None:
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            self.min_val.copy_(least)
            self.max_val.copy_(most)
            return
        constant = self.averaging_constant
        self.min_val.copy_(self.min_val + constant * (least - self.min_val))
        self.max_val.copy_(self.max_val + constant * (most - self.max_val))


class PerChannelMinMaxObserver(_RangeObserver):
    """The least and the largest number of each index of a dimension.

    Args:
        ch_axis: the dimension.
    """

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme not in PER_CHANNEL:
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support "
                "torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(
                "PerChannelMinMaxObserver doesn't support dynamic quantization"
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic,
            **kwargs,
        )  # fmt: skip
        self.ch_axis = ch_axis
        self.register_buffer("min_val", taeda.tensor([], **(factory_kwargs or {})))
        self.register_buffer("max_val", taeda.tensor([], **(factory_kwargs or {})))
        self._refuse_reduced_bytes(taeda.per_channel_symmetric)

    def forward(self, x_orig: Tensor) -> Tensor:
        """Looks at `x_orig` and returns it."""
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype).transpose(0, self.ch_axis)
            least, most = taeda.aminmax(x.reshape(x.shape[0], -1), dim=1)
            if self.min_val.numel() == 0:
                self.min_val.resize_(least.shape)
                self.max_val.resize_(most.shape)
                self.min_val.copy_(least)
                self.max_val.copy_(most)
            else:
                self._see(least, most)
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        self.min_val.resize_(0)
        self.max_val.resize_(0)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for old, new in _OLD_NAMES.items():
            if prefix + old in state_dict:
                state_dict[prefix + new] = state_dict.pop(prefix + old)
        resize_as_saved(self, state_dict, prefix, ("min_val", "max_val"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Moving averages of the range of each index of a dimension."""

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    def _see(self, least: Tensor, most: Tensor) -> None:
        constant = self.averaging_constant
        self.min_val.copy_(self.min_val + constant * (least - self.min_val))
        self.max_val.copy_(self.max_val + constant * (most - self.max_val))


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", taeda.tensor([scale], dtype=taeda.float32))
        self.register_buffer("zero_point", taeda.tensor([zero_point], dtype=taeda.int32))

    def forward(self, X: Tensor) -> Tensor:
        return X

    def calculate_qparams(self) -> _Parameters:  # type: ignore[override]
        """The scale and the zero point."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Says which dtype a tensor is to have, and looks at nothing."""

    def __init__(
        self,
        dtype: Any = taeda.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic or compute_dtype is not None)
        self.qscheme = taeda.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.custom_op = custom_op_name
        if compute_dtype is not None:
            warnings.warn("Please use `is_dynamic` instead of `compute_dtype`.", stacklevel=2)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Keeps copies of all tensors seen, for looking into a model."""

    def __init__(self, dtype: Any = taeda.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """The tensors seen."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Looks at nothing."""

    def __init__(self, dtype: Any = taeda.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        raise Exception("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Stands where the observer of an operator's input serves its output too."""

    def __init__(self) -> None:
        super().__init__(taeda.quint8)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")


from ._histogram import HistogramObserver  # noqa: E402

HistogramObserver.__module__ = __name__


def get_observer_state_dict(mod: Module) -> OrderedDict[str, Any]:
    """What of a module's state its observers hold."""
    state = mod.state_dict()
    return OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Any]) -> None:
    """Restores observers from what `get_observer_state_dict` gave."""
    missing: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, name + ".", {}, False, missing, [], [])
    if missing:
        raise RuntimeError(f"load_observer_state_dict: missing {missing}")


def _is_activation_post_process(module: Any) -> bool:
    from .fake_quantize import FakeQuantizeBase

    return isinstance(module, ObserverBase | FakeQuantizeBase)


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
_SIGNED = {"dtype": taeda.qint8, "qscheme": taeda.per_tensor_symmetric}
_SIGNED_CHANNEL = {"dtype": taeda.qint8, "qscheme": taeda.per_channel_symmetric}
_NARROW = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
default_weight_observer = MinMaxObserver.with_args(**_SIGNED)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(**_SIGNED, **_NARROW)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(**_SIGNED_CHANNEL)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    **_SIGNED_CHANNEL, **_NARROW
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=taeda.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
_FLOAT_POINTS = {"qscheme": taeda.per_channel_affine_float_qparams, "ch_axis": 0}
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=taeda.quint8, **_FLOAT_POINTS
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=taeda.quint4x2, **_FLOAT_POINTS
)
_BYTE = {"dtype": taeda.quint8, "quant_min": 0, "quant_max": 255}
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, **_BYTE
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, **_BYTE
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver

__getattr__, __dir__ = _missing.attributes(__name__)
