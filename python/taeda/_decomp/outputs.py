"""Forms of operators that write their results into tensors, which PyTorch's table has."""

from __future__ import annotations

from typing import Any

from taeda import _C

from . import (  # noqa: F401  # what they define comes first
    activations,
    aliases,
    arithmetic,
    composites,
    factories,
    losses,
    norms,
    quantization,
    recurrent,
    registry,
    shapes,
    windows,
)

#: operator=outs, where it has an overload of that name: "mse_loss.out" writes `out`.
_OUT = """
_log_softmax_backward_data _unsafe_view affine_grid_generator binary_cross_entropy
binary_cross_entropy_with_logits block_diag channel_shuffle col2im empty_like glu
hardswish_backward huber_loss im2col max_unpool2d max_unpool3d mse_loss multi_margin_loss
native_dropout_backward new_empty new_full new_ones new_zeros ones_like pixel_shuffle
pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
replication_pad2d replication_pad3d resize_as smooth_l1_loss soft_margin_loss special_entr
special_log_ndtr special_xlog1py upsample_bilinear2d upsample_linear1d upsample_trilinear3d zero
zeros_like
"""
_GRAD_INPUT = """
binary_cross_entropy_backward elu_backward gelu_backward glu_backward hardsigmoid_backward
leaky_relu_backward log_sigmoid_backward mse_loss_backward nll_loss2d_backward nll_loss_backward
reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward sigmoid_backward
silu_backward smooth_l1_loss_backward soft_margin_loss_backward softplus_backward tanh_backward
"""
#: overload with outs -> its names and the overload without, where neither is "out"
_OTHERS = {
    "_softmax_backward_data.out": (["grad_input"], ""),
    "huber_loss_backward.out": (["grad_input"], ""),
    "_weight_norm_interface.out": (["out0", "out1"], ""),
    "native_batch_norm_backward.out": (["out0", "out1", "out2"], ""),
    "native_group_norm_backward.out": (["out0", "out1", "out2"], ""),
    "native_layer_norm_backward.out": (["out0", "out1", "out2"], ""),
    "log_sigmoid_forward.output": (["output", "buffer"], ""),
    "multilabel_margin_loss_forward.output": (["output", "is_target"], ""),
    "nll_loss2d_forward.output": (["output", "total_weight"], ""),
    "nll_loss_forward.output": (["output", "total_weight"], ""),
    "all.all_out": (["out"], ""),
    "baddbmm.dtype_out": (["out"], "dtype"),
    "isin.Scalar_Tensor_out": (["out"], "Scalar_Tensor"),
    "isin.Tensor_Scalar_out": (["out"], "Tensor_Scalar"),
    "norm.dtype_out": (["out"], "ScalarOpt_dim_dtype"),
    "special_xlog1py.other_scalar_out": (["out"], "other_scalar"),
    "special_xlog1py.self_scalar_out": (["out"], "self_scalar"),
    "squeeze_copy.dim_out": (["out"], "dim"),
    "squeeze_copy.dims_out": (["out"], "dims"),
    "xlogy.OutScalar_Other": (["out"], "Scalar_Other"),
    "xlogy.OutScalar_Self": (["out"], "Scalar_Self"),
}
_OPTIONS = ("dtype", "layout", "device", "pin_memory")  # those of factories, which `out` has


def _all() -> dict[str, tuple[list[str], str]]:
    found: dict[str, tuple[list[str], str]] = dict(_OTHERS)
    found |= {f"{name}.out": (["out"], "") for name in _OUT.split()}
    return found | {f"{name}.grad_input": (["grad_input"], "") for name in _GRAD_INPUT.split()}


def _schema(name: str, outs: list[str], op: Any) -> str:
    """The schema of `op` with outs behind its arguments."""
    text = str(op._schema).partition("(")[2].rpartition(") -> ")[0]
    arguments = [a for a in text.split(", ") if a]
    if {"layout", "pin_memory"} <= {a.split("=")[0].split(" ")[-1] for a in arguments}:
        arguments = [a for a in arguments if a.split("=")[0].split(" ")[-1] not in _OPTIONS]
    marks = [f"Tensor({mark}!)" for mark in "abcd"[: len(outs)]]
    star = [] if "*" in arguments else ["*"]
    written = [f"{mark} {out}" for mark, out in zip(marks, outs)]
    results = marks[0] if len(marks) == 1 else f"({', '.join(marks)})"
    return f"aten::{name}({', '.join([*arguments, *star, *written])}) -> {results}"


def _writing(op: Any, outs: list[str]) -> Any:
    """A function that calls `op` and writes what it gives into its outs."""

    def run(*args: Any, **kwargs: Any) -> Any:
        into = [kwargs.pop(name) for name in outs]
        results = op(*args, **kwargs)
        for out, value in zip(into, results if len(into) > 1 else [results], strict=True):
            if out.shape != value.shape:
                out.resize_(value.shape)
            out.copy_(value)
        return into[0] if len(into) == 1 else tuple(into)

    return run


def _define() -> None:
    for name, (outs, overload) in _all().items():
        own_name, _, own_overload = name.partition(".")
        op = _C._operator(f"aten::{own_name}", overload)
        if op is not None and _C._operator(f"aten::{own_name}", own_overload) is None:
            function = _writing(op, outs)
            _C._define_composite(_schema(name, outs, op), function)
            registry.WRITTEN[f"aten::{own_name}", own_overload] = function


_define()
