"""Which layers take part in quantization, and what training replaces them by."""

from __future__ import annotations

from typing import Any

from taeda import _missing, nn
from taeda.ao.nn import intrinsic, qat, quantized
from taeda.ao.nn.intrinsic import qat as intrinsic_qat

from . import fake_quantize as fake
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
]


def _numbered(name: str, source: Any, target: Any) -> dict[Any, Any]:
    return {getattr(source, f"{name}{n}d"): getattr(target, f"{name}{n}d") for n in (1, 2, 3)}


_LINEAR = nn.modules.linear.NonDynamicallyQuantizableLinear
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Conv2d: qat.Conv2d,
    nn.Conv3d: qat.Conv3d,
    nn.Linear: qat.Linear,
    _LINEAR: qat.Linear,
    **_numbered("ConvBn", intrinsic, intrinsic_qat),
    **_numbered("ConvBnReLU", intrinsic, intrinsic_qat),
    intrinsic.ConvReLU2d: intrinsic_qat.ConvReLU2d,
    intrinsic.ConvReLU3d: intrinsic_qat.ConvReLU3d,
    intrinsic.LinearReLU: intrinsic_qat.LinearReLU,
}
#: Whose results have a range that is known beforehand.
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    nn.Hardsigmoid: fake.default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: fake.default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: fake.default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: fake.default_fixed_qparams_range_neg1to1_fake_quant,
}
_OBSERVED = """
BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d
InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU LSTM GRU GRUCell LSTMCell RNNCell Sequential
"""


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """What `prepare_qat` replaces layers by."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers whose results are observed."""
    fused = {v for v in vars(intrinsic).values() if isinstance(v, type)}
    mapping = DEFAULT_QAT_MODULE_MAPPINGS
    own = {QuantStub, DeQuantStub, quantized.FloatFunctional, _LINEAR}
    layers = {getattr(nn, name) for name in _OBSERVED.split()}
    return own | layers | fused | set(mapping) | set(mapping.values())


__getattr__, __dir__ = _missing.attributes(__name__)
