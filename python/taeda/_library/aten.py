"""Operators of PyTorch that the table has in another form, and how calls of the table's are spelled
for a `__torch_dispatch__`: as PyTorch's operator with PyTorch's arguments."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from taeda import _C, Tensor

from .aten_copies import converted
from .spelling import SPELLINGS, aten, from_table, ours
from .spelling import define as _define
from .spelling import like as _like
from .spelling import spells as _spells

_THREE = "(Tensor?, Tensor?, Tensor?)"  # None where the mask leaves it out


def _chosen(results: Any, mask: Any) -> tuple:
    return tuple(r if m else None for r, m in zip(results, mask))


# --- copies ---


@_define(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor"
)
def _to_copy(
    self: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A copy of another dtype or on another device, always new."""
    return converted(self, dtype, device, pin_memory, non_blocking, True, memory_format)


@_spells("_cast")
def _(x: Any, dtype: Any, memory_format: Any = None) -> tuple:
    if not isinstance(x, Tensor):  # a number that stands for a tensor
        return aten.scalar_tensor.default, (x,), {"dtype": dtype}, None
    layout = {} if memory_format is None else {"memory_format": memory_format}
    return _to_copy, (x,), {"dtype": dtype, **layout}, None


@_define("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in pinned memory."""
    return self.pin_memory()


# --- convolution ---


def _with_settings(x: Tensor, weight: Tensor, bias: Any, *rest: Any) -> Tensor:
    """A convolution; PyTorch's choice of libraries, given behind the groups, changes nothing."""
    return aten.convolution(x, weight, bias, *rest[:6])


_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, {}[] output_padding, SymInt groups, bool benchmark, "
    "bool deterministic, bool cudnn_enabled"
)
_define(f"_convolution({_CONVOLUTION.format('SymInt')}, bool allow_tf32) -> Tensor")(_with_settings)
_define(f"_convolution.deprecated({_CONVOLUTION.format('int')}) -> Tensor")(_with_settings)


@_define(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    f"SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> {_THREE}"
)
def _convolution_backward(gy: Tensor, x: Tensor, weight: Tensor, bias: Any, *rest: Any) -> tuple:
    *where, mask = rest
    gx = gw = gb = None
    if mask[0]:
        gx = ours.convolution_backward_input(gy, weight, x.shape, *where)
    if mask[1] or mask[2]:
        gw, gb = ours.convolution_backward_weight(gy, x, weight.shape, *where, mask[2])
    return _chosen((gx, gw, gb), mask)


@_spells("convolution_backward_input")
def _(gy: Tensor, weight: Tensor, sizes: Any, *where: Any) -> tuple:
    args = (gy, _like(gy, sizes), weight, None, *where, [True, False, False])
    return _convolution_backward, args, {}, itemgetter(0)


@_spells("convolution_backward_weight")
def _(gy: Tensor, x: Tensor, sizes: Any, *rest: Any) -> tuple:
    *where, bias = rest
    args = (gy, x, _like(gy, sizes), [gy.shape[1]] if bias else None, *where, [False, True, bias])
    return _convolution_backward, args, {}, itemgetter(1, 2)


# --- normalization ---


@_define(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
    f"Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> {_THREE}"
)
def _layer_norm_backward(*args: Any) -> tuple:
    *given, _, mask = args
    return _chosen(ours.layer_norm_backward(*given, 1e-5), mask)


@_spells("layer_norm_backward")
def _(*args: Any) -> tuple:
    *given, weight, _ = args
    affine = weight is not None
    return _layer_norm_backward, (*given, weight, weight, [True, affine, affine]), {}, None


@_define(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
    f"Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> {_THREE}"
)
def _group_norm_backward(gy: Tensor, x: Tensor, mean: Any, rstd: Any, w: Any, *rest: Any) -> tuple:
    *_, group, mask = rest
    return _chosen(ours.group_norm_backward(gy, x, group, mean, rstd, w, 1e-5), mask)


@_spells("group_norm_backward")
def _(gy: Tensor, x: Tensor, group: int, mean: Tensor, rstd: Tensor, w: Any, eps: float) -> tuple:
    mask = [True, w is not None, w is not None]
    return _group_norm_backward, (gy, x, mean, rstd, w, *_sizes(x), group, mask), {}, None


@_spells("_group_norm")
def _(x: Tensor, group: int, weight: Any, bias: Any, eps: float) -> tuple:
    return aten.native_group_norm.default, (x, weight, bias, *_sizes(x), group, eps), {}, None


def _sizes(x: Tensor) -> tuple[int, int, int]:
    """The batch, the channels and how many elements each has."""
    n, c, *rest = x.shape
    inner = 1
    for size in rest:
        inner *= size
    return n, c, inner


@_define(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, "
    "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, "
    f"bool train, float eps, bool[3] output_mask) -> {_THREE}"
)
def _batch_norm_backward(gy: Tensor, x: Tensor, weight: Any, *rest: Any) -> tuple:
    mean, var, saved_mean, saved_invstd, train, eps, mask = rest
    if train:
        mean, var = saved_mean, saved_invstd.pow(-2) - eps
    return _chosen(ours.batch_norm_backward(gy, x, weight, mean, var, train, eps), mask)


@_spells("batch_norm_backward")
def _(gy: Tensor, x: Tensor, w: Any, mean: Tensor, var: Tensor, train: bool, eps: float) -> tuple:
    kept = (None, None, mean, (var + eps).rsqrt()) if train else (mean, var, None, None)
    mask = [True, w is not None, w is not None]
    return _batch_norm_backward, (gy, x, w, *kept, train, eps, mask), {}, None


@_spells("_batch_norm_eval")
def _(x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, eps: float) -> tuple:
    if x.numel() == 0:  # which native_batch_norm refuses
        return ours._batch_norm_eval.default, (x, weight, bias, mean, var, eps), {}, None
    args = (x, weight, bias, mean, var, False, 0.0, eps)
    return aten.native_batch_norm.default, args, {}, itemgetter(0)


@_spells("_batch_norm_train")
def _(x: Tensor, weight: Any, bias: Any, eps: float) -> tuple:
    if x.numel() == 0:
        return ours._batch_norm_train.default, (x, weight, bias, eps), {}, None
    args = (x, weight, bias, None, None, True, 0.0, eps)
    restore = lambda r: (r[0], r[1], r[2].pow(-2) - eps)  # noqa: E731
    return aten.native_batch_norm.default, args, {}, restore


# --- softmax, attention, pooling ---

_SOFTMAX = "_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)"
for _name in ("softmax", "log_softmax"):
    _gradient = getattr(ours, f"{_name}_backward")
    _op = _define(f"_{_name}{_SOFTMAX} -> Tensor")(lambda *args, run=_gradient: run(*args))
    _spells(f"{_name}_backward")(lambda *args, op=_op: (op, args, {}, None))


@_define(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor output, Tensor logsumexp)"
)
def _attention(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0, causal: bool = False, *,
               attn_mask: Tensor | None = None, scale: float | None = None) -> tuple:  # fmt: skip
    if dropout:
        raise RuntimeError("scaled_dot_product_attention: no dropout in one pass on the CPU")
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return ours._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask, causal, scale)


@_spells("_scaled_dot_product_flash_attention_for_cpu")
def _(q: Tensor, k: Tensor, v: Tensor, mask: Any, causal: bool, scale: float) -> tuple:
    return _attention, (q, k, v, 0.0, causal), {"attn_mask": mask, "scale": scale}, None


@_define(
    "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
    "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"
)
def _avg_pool2d_backward(gy: Tensor, x: Tensor, *rest: Any) -> Tensor:
    return ours.avg_pool2d_backward(gy, x.shape, *rest)


@_spells("avg_pool2d_backward")
def _(gy: Tensor, sizes: Any, *rest: Any) -> tuple:
    return _avg_pool2d_backward, (gy, _like(gy, sizes), *rest), {}, None


@_spells("_avg_pool2d")
def _(*args: Any) -> tuple:
    return aten.avg_pool2d.default, args, {}, None


from . import (  # noqa: E402, F401
    aten_attention,
    aten_copies,
    aten_functions,
    aten_image,
    aten_math,
    aten_nn,
    aten_queries,
)

for _op, _text in _C._spellings():
    SPELLINGS[_op.name()] = from_table(_op, _text)

ALL_DEFINED = True  # for who looks for an operator while these modules are loaded
