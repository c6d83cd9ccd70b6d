"""QConfig: which observer or fake quantization a layer's outputs and weights get.

>>> from torch.ao.quantization import get_default_qat_qconfig
>>> type(get_default_qat_qconfig("x86").weight()).__name__
'FusedMovingAvgObsFakeQuantize'
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import taeda
from taeda import _missing
from taeda.nn import Identity, Module

from . import fake_quantize as fake
from . import observer as see

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig",
    "get_default_qconfig_dict",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Constructors of what observes, or fake quantizes, outputs and weights.

    They are classes or ``Observer.with_args(...)``, and no modules: each layer gets its own.
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The old form of a QConfig whose outputs are quantized as they come."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        if isinstance(weight, Module):
            raise ValueError("QConfigDynamic received observer instance, please pass its class")
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
_FLOAT16 = see.PlaceholderObserver.with_args(dtype=taeda.float16)
_CHANNEL = see.default_per_channel_weight_observer
_PLACEHOLDER = see.default_placeholder_observer

default_qconfig = QConfig(see.default_observer, see.default_weight_observer)
default_debug_qconfig = QConfig(see.default_debug_observer, see.default_weight_observer)
default_per_channel_qconfig = QConfig(see.default_observer, _CHANNEL)
default_dynamic_qconfig = QConfig(see.default_dynamic_quant_observer, see.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    see.PlaceholderObserver.with_args(dtype=taeda.float16, is_dynamic=True), _FLOAT16
)
float16_static_qconfig = QConfig(_FLOAT16, _FLOAT16)
per_channel_dynamic_qconfig = QConfig(see.default_dynamic_quant_observer, _CHANNEL)
float_qparams_weight_only_qconfig = QConfig(_PLACEHOLDER, see.default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(
    _PLACEHOLDER, see.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(fake.default_fake_quant, fake.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(
    fake.default_dynamic_fake_quant, fake.default_weight_fake_quant
)
default_weight_only_qconfig = QConfig(Identity, fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fake.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(
    fake.default_fused_act_fake_quant, fake.default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(see.default_reuse_input_observer, see.NoopObserver)
_NARROW_HISTOGRAM = see.HistogramObserver.with_args(
    dtype=taeda.qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qconfig = QConfig(
    _NARROW_HISTOGRAM, see.weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _NARROW_HISTOGRAM, see.per_channel_weight_observer_range_neg_127_to_127
)
_NOOP = see.NoopObserver.with_args(dtype=taeda.float32)
default_embedding_qat_qconfig = QConfig(_NOOP, fake.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(_NOOP, fake.default_embedding_fake_quant_4bit)
default_quint8_weight_qconfig = QConfig(see.HistogramObserver, see.MinMaxObserver)
_SIGNED = fake.FusedMovingAvgObsFakeQuantize.with_args(
    observer=see.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=taeda.qint8,
    reduce_range=False, eps=2**-12,
)  # fmt: skip
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED, fake.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED, fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _check(backend: str, version: int | None, versions: tuple[int, ...], name: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}"
        )
    if version not in versions:
        raise AssertionError(
            f"Version number: {version} in {name} is not supported. Version number must be "
            + " or ".join(map(str, versions))
        )


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Observers for quantization after training."""
    _check(backend, version, (0,), "get_default_qconfig")
    reduced = backend in ("fbgemm", "x86")
    weight = see.default_weight_observer if backend == "qnnpack" else _CHANNEL
    return QConfig(see.HistogramObserver.with_args(reduce_range=reduced), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """Fake quantization for training: fused with its observer in version 1."""
    _check(backend, version, (0, 1), "get_default_qat_qconfig")
    kind = fake.FusedMovingAvgObsFakeQuantize if version else fake.FakeQuantize
    settings = {} if backend == "onednn" else {"reduce_range": backend in ("fbgemm", "x86")}
    activation = kind.with_args(
        observer=see.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **settings
    )
    if version:
        weights = fake.default_fused_wt_fake_quant, fake.default_fused_per_channel_wt_fake_quant
    else:
        weights = fake.default_weight_fake_quant, fake.default_per_channel_weight_fake_quant
    return QConfig(activation, weights[0 if backend == "qnnpack" else 1])


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """The same as a dictionary for a whole model."""
    return {"": get_default_qconfig(backend, version)}


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """The same as a dictionary for a whole model."""
    return {"": get_default_qat_qconfig(backend, version)}


def _made_like(a: Any, b: Any) -> bool:
    """Whether two constructors make the same."""
    if isinstance(a, see._PartialWrapper) and isinstance(b, see._PartialWrapper):
        return _made_like(a.p.func, b.p.func) and _same_settings(a.p.keywords, b.p.keywords)
    return a == b


def _same_settings(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(_made_like(a[name], b[name]) for name in a)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return _made_like(q1.activation, q2.activation) and _made_like(q1.weight, q2.weight)


__getattr__, __dir__ = _missing.attributes(__name__)
