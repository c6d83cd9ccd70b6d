"""The operators of torchvision's library ``_C``: boxes, pooling of regions, deformable convolution.

torchvision registers itself what they do on device meta, in autograd and in autocast. Image and
video decoding (its library ``image``) is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from taeda._libraries.torchvision import boxes, deform_conv, roi_align, roi_pool
from taeda.library import Library

_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLVED = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_QUANTIZED = "float input_scale, int input_zero_point, float rois_scale, int rois_zero_point"


def _no_quantized(name: str, *args: Any) -> Any:
    raise NotImplementedError(f"torchvision::{name}: taeda has no quantized tensors; dequantize")


_OPERATORS: dict[str, Callable] = {
    "_cuda_version() -> int": lambda: -1,
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": boxes.nms,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": boxes.box_iou_rotated,
    f"roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor":
        roi_align.roi_align,
    f"_roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio, "
    "bool aligned) -> Tensor": roi_align.roi_align_backward,
    f"ps_roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)":
        roi_align.ps_roi_align,
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, "
    f"int sampling_ratio, {_SIZES}) -> Tensor": roi_align.ps_roi_align_backward,
    f"roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)": roi_pool.roi_pool,
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor":
        roi_pool.roi_pool_backward,
    f"ps_roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)":
        roi_align.ps_roi_pool,
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES})"
    " -> Tensor": roi_align.ps_roi_pool_backward,
    f"deform_conv2d({_CONVOLVED}) -> Tensor": deform_conv.deform_conv2d,
    f"_deform_conv2d_backward(Tensor grad, {_CONVOLVED}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)": deform_conv.deform_conv2d_backward,
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor":
        partial(_no_quantized, "qnms"),
    f"qroi_align(Tensor input, Tensor rois, {_QUANTIZED}, {_POOLED}, int sampling_ratio, "
    "bool aligned) -> Tensor": partial(_no_quantized, "qroi_align"),
}  # fmt: skip

_library = Library("torchvision", "DEF")  # takes its operators with it
for _schema, _function in _OPERATORS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeExplicitAutograd")
