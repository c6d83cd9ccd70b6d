"""Functions on tensors: methods under torch's name, old norms, segments, finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._arguments import (
    require_dtype,
    require_int,
    require_list_of_tensors,
    require_tensors,
)
from taeda._functional import _of_tensor


def _of_method(name: str) -> Callable[..., Any]:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _of_tensor(name, input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    _, _, text = (getattr(Tensor, name).__doc__ or "").partition("\n\n")  # behind its signature
    function.__doc__ = f"`Tensor.{name}`: {text}" if text else f"`Tensor.{name}`."
    return _C._overridable(function)


detach_ = _of_method("detach_")
fill_ = _of_method("fill_")
zero_ = _of_method("zero_")
index_put_ = _of_method("index_put_")
get_device = _of_method("get_device")
is_neg = _of_method("is_neg")
is_signed = _of_method("is_signed")
dequantize = _of_method("dequantize")


@_C._overridable
def is_distributed(input: Tensor) -> bool:
    """False: no tensor is."""
    return False


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError where the only element of `input` is 0: with the message, if one is given.

    >>> torch._assert_async(torch.tensor(True))
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            "_assert_async(): argument 'input' (position 1) must be Tensor, not "
            f"{type(input).__name__}"
        )
    if assert_msg is None:
        taeda.ops.aten._assert_async.default(input)
    else:
        taeda.ops.aten._assert_async.msg(input, assert_msg)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes as a tensor.

    >>> torch._shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return taeda.tensor(list(self.shape), dtype=taeda.int64)


@_C._overridable
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The 2-norm over one or two dimensions.

    >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
    tensor(5.)
    """
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return taeda.linalg.vector_norm(input, 2, dims or None, keepdim)


@_C._overridable
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices, of the dimensions `dim`.

    >>> torch.nuclear_norm(torch.diag(torch.tensor([1.0, 2.0])))
    tensor(3.)
    """
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if dim is None:
        if input.dim() != 2:
            raise RuntimeError(
                f"Expected a tensor with 2 dimensions, but got a tensor with {input.dim()} "
                f"dimension{'s' if input.dim() != 1 else ''} instead."
            )
        dim = (0, 1)
    return taeda.linalg.matrix_norm(input, "nuc", tuple(dim), keepdim)


row_stack = taeda.vstack


@_C._overridable
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> tuple[Tensor, ...]:
    """`torch.linalg.lu_factor`, with LAPACK's status of each matrix for `get_infos`.

    >>> torch.lu(torch.tensor([[2.0, 1.0], [4.0, 4.0]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    result = tuple(taeda.linalg.lu_factor_ex(A, pivot=pivot, check_errors=not get_infos))
    result = result if get_infos else result[:2]
    if out is None:
        return result
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        given = len(out) if isinstance(out, (tuple, list)) else type(out).__name__
        raise TypeError(f"lu(): out= expected tuple of {len(result)} elements but got {given}")
    require_list_of_tensors("lu", out)
    for given, value in zip(out, result, strict=True):
        given.resize_as_(value).copy_(value)
    return tuple(out)


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether several elements share memory: 0 no, 1 yes, 2 that this look cannot say.

    >>> torch._debug_has_internal_overlap(torch.zeros(1, 3).expand(4, 3))
    1
    """
    layout = [(step, n) for n, step in zip(input.shape, input.stride()) if n != 1]
    if input.numel() < 2:
        return 0
    if any(step == 0 for step, _ in layout):
        return 1
    dense = 1
    for step, n in sorted(layout):
        if step != dense:
            return 2
        dense *= n
    return 0


@_C._overridable
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The derivatives along `dim`, by central differences, of `edge_order` at the edges.

    `spacing` is the distance between points, a number for all or one for each dimension, or
    tensors of coordinates.

    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))[0]
    tensor([3., 4., 6., 7.])
    """
    require_tensors("gradient", input=input)
    require_int("gradient", "edge_order", edge_order)
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(spacing, Sequence):
        steps = list(spacing)
    else:
        count = input.dim() if dims is None else len(dims)
        steps = [1 if spacing is None else spacing] * count
    return tuple(
        _C._by_owner["torch"]["_gradient"](input, spacing=steps, dim=dims, edge_order=edge_order)
    )


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether a tensor can take the metadata of another in place, as ``x.data = y`` does: both are
    of one layout and kind of device."""
    return input.layout == from_.layout and input.device.type == from_.device.type


def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two int8 matrices in int32.

    >>> torch._int_mm(torch.full((1, 2), 100).char(), torch.full((2, 1), 100).char())
    tensor([[20000]], dtype=torch.int32)
    """
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"_int_mm: expected a matrix for {name}, got {matrix.dim()} dims")
        if matrix.dtype not in (taeda.int8, taeda.uint8):
            raise RuntimeError(f"_int_mm: expected int8 or uint8 for {name}, got {matrix.dtype}")
    product = taeda.mm(input.to(taeda.int32), mat2.to(taeda.int32))
    return product if out is None else out.resize_(product.shape).copy_(product)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` scaled so that its norm over all dimensions but `dim` is `g`.

    >>> torch._weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[10.0]]))
    tensor([[6., 8.]])
    """
    return v * (g / taeda.norm_except_dim(v, 2, dim))


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Softmax; of float16 on GPUs in float32 where ``half_to_float``.

    >>> torch._softmax(torch.tensor([0.0, 0.0]), 0, False)
    tensor([0.5000, 0.5000])
    """
    _check_no_conversion("softmax", half_to_float)
    return self.softmax(dim)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """The same of log_softmax."""
    _check_no_conversion("log_softmax", half_to_float)
    return self.log_softmax(dim)


def _check_no_conversion(name: str, half_to_float: bool) -> None:
    if half_to_float:
        raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")


def _check_same_dtype(grad_output: Tensor, output: Tensor) -> None:
    if grad_output.dtype != output.dtype:
        raise RuntimeError(
            f"expected grad_output and output to have one dtype, got {grad_output.dtype} and "
            f"{output.dtype}"
        )


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: taeda.dtype
) -> Tensor:
    """The gradient of softmax's argument, given that of `output` = softmax over `dim`.

    >>> torch._softmax_backward_data(torch.tensor([1.0, 0]), torch.tensor([0.5, 0.5]), 0,
    ...                              torch.float32)
    tensor([ 0.2500, -0.2500])
    """
    require_dtype("_softmax_backward_data", "input_dtype", input_dtype)
    _check_same_dtype(grad_output, output)
    return taeda.ops.taeda.softmax_backward(grad_output, output, dim, input_dtype)


def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: taeda.dtype
) -> Tensor:
    """The same of log_softmax."""
    require_dtype("_log_softmax_backward_data", "input_dtype", input_dtype)
    _check_same_dtype(grad_output, output)
    return taeda.ops.taeda.log_softmax_backward(grad_output, output, dim, input_dtype)
