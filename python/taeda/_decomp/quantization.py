"""Fake quantization as PyTorch's table calls it."""

from __future__ import annotations

from taeda._functions import quantization as own

from .registry import new

_RANGE = "int quant_min, int quant_max"
_ROWS = f"Tensor self, Tensor scale, Tensor zero_point, int axis, {_RANGE}"
_BOTH = "(Tensor output, Tensor mask)"
_OBSERVED = (
    "Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, "
    "Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, "
    f"{_RANGE}, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False"
)
_LEARNED = "_fake_quantize_learnable_per"

for _name, _function, _results in (
    ("fake_quantize_per_tensor_affine", own.fake_quantize_per_tensor_affine, "Tensor"),
    ("fake_quantize_per_tensor_affine_cachemask", own._per_tensor, _BOTH),
):
    new(f"{_name}(Tensor self, float scale, int zero_point, {_RANGE}) -> {_results}")(_function)
new(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    f"{_RANGE}) -> Tensor"
)(own.fake_quantize_per_tensor_affine)
new(f"fake_quantize_per_channel_affine({_ROWS}) -> Tensor")(own.fake_quantize_per_channel_affine)
new(f"fake_quantize_per_channel_affine_cachemask({_ROWS}) -> {_BOTH}")(own._per_channel)
new(f"fused_moving_avg_obs_fake_quant({_OBSERVED}) -> Tensor")(own.fused_moving_avg_obs_fake_quant)
new(f"_fused_moving_avg_obs_fq_helper({_OBSERVED}) -> {_BOTH}")(own._fused_moving_avg_obs_fq_helper)
new(
    f"{_LEARNED}_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}, "
    "float grad_factor=1.0) -> Tensor"
)(own._fake_quantize_learnable_per_tensor_affine)
new(f"{_LEARNED}_channel_affine({_ROWS}, float grad_factor=1.0) -> Tensor")(
    own._fake_quantize_learnable_per_channel_affine
)
