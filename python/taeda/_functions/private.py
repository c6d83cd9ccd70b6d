"""Functions of torch whose names begin with _, which programs and libraries reach all the same."""

from __future__ import annotations

import math
from typing import Any

import taeda as torch
from taeda import Tensor, _dtypes, return_types

#: Those that torch.ops.aten has.
OPERATORS = frozenset(
    """
    _adaptive_avg_pool2d _adaptive_avg_pool3d _assert_scalar _assert_tensor_metadata _coalesce
    _conj_copy _convolution _ctc_loss _embedding_bag _embedding_bag_forward_only _euclidean_dist
    _fused_adagrad_ _fused_rms_norm _is_all_true _is_any_true _linalg_det _linalg_eigh
    _linalg_slogdet _linalg_solve_ex _linalg_svd _native_batch_norm_legit
    _native_batch_norm_legit_no_training _neg_view_copy _pin_memory _prelu_kernel _print
    _reshape_alias_copy _safe_softmax _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu _to_cpu
    _trilinear _unsafe_index _unsafe_index_put _weight_norm_interface
    """.split()
)
CASTS = {
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


def _cast(name: str, dtype: Any) -> Any:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        return self.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"The tensor in {dtype}; itself where it has it."
    return cast


globals().update({f"_cast_{name}": _cast(name, dtype) for name, dtype in CASTS.items()})


def _symbolic(name: str) -> Any:
    """torch._sym_sqrt and its like: a function of `math`, of a number."""
    function = getattr(math, name.removeprefix("_sym_"), None)
    return function if name.startswith("_sym_") and callable(function) else None


def _stack(tensors: Any, dim: int = 0) -> Tensor:
    """`torch.stack`."""
    return torch.stack(tensors, dim)


def _aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element."""
    low, high = torch.aminmax(self, dim=dim, keepdim=keepdim)
    return low, high


def _logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """`torch.logcumsumexp`."""
    return torch.logcumsumexp(self, dim)


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """The indices along a dimension of a tensor."""
    return torch.arange(like.size(dim), device=like.device)


def _reshape_from_tensor(self: Tensor, shape: Tensor) -> Tensor:
    """The tensor in the sizes that another tensor holds."""
    return self.reshape(shape.tolist())


def _resize_output_(self: Tensor, size: Any, device: Any) -> Tensor:
    """Gives a result the sizes that it will have."""
    return self.resize_(size)


def _index_put_impl_(
    self: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """`Tensor.index_put_`; indices are checked in any case."""
    return self.index_put_(indices, values, accumulate)


def _masked_scale(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    """self * mask * scale: the gradient of dropout."""
    return self * mask * scale


def _masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Softmax of where `mask` is False, 0 elsewhere."""
    result = self.masked_fill(mask, -math.inf).softmax(-1 if dim is None else dim)
    return result.masked_fill(mask, 0)


def _add_relu(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """relu(self + alpha * other)"""
    return torch.add(self, other, alpha=alpha).relu()


def _add_relu_(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """`_add_relu` into the tensor."""
    return self.add_(other, alpha=alpha).relu_()


def _addmm_activation(
    self: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    use_gelu: bool = False,
) -> Tensor:
    """relu, or gelu, of addmm."""
    made = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return torch._C._nn.gelu(made) if use_gelu else made.relu()


def _convolution_mode(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: str,
    dilation: Any,
    groups: int,
) -> Tensor:
    """A convolution whose padding is "same" or "valid"."""
    convolve = getattr(torch.nn.functional, f"conv{weight.dim() - 2}d")
    return convolve(input, weight, bias, stride, padding, dilation, groups)


def _pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """Data and batch sizes of a packed sequence; lengths descend."""
    packed = torch.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """A padded tensor of a packed sequence's parts, and lengths; total_length -1: the longest."""
    rnn = torch.nn.utils.rnn
    length = total_length if total_length > 0 else None
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding_value, length)


def _amp_foreach_non_finite_check_and_unscale_(
    self: list[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiplies gradients by `inv_scale`; `found_inf` becomes 1 where one is not finite."""
    torch.amp.grad_scaler._unscale(self, found_inf, inv_scale)


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The next scale of the loss: smaller after what is not finite, larger after good steps."""
    factors = scale_growth_factor, scale_backoff_factor
    torch.amp.grad_scaler._adapt(self, growth_tracker, found_inf != 0, *factors, growth_interval)
    return self


def _sparse_sparse_matmul(self: Tensor, other: Tensor) -> Tensor:
    """The product of two sparse matrices."""
    return torch.sparse.mm(self, other)


def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Any, is_coalesced: bool | None = None
) -> None:
    """RuntimeError where a sparse tensor cannot have these parts."""
    from taeda.sparse._invariants import check_coo

    check_coo(indices, values, tuple(size), True, bool(is_coalesced))


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, layout: Any
) -> None:
    """RuntimeError where a tensor of a compressed layout cannot have these parts."""
    from taeda.sparse._invariants import check_compressed

    check_compressed(layout, compressed_indices, plain_indices, values, tuple(size), True)


def _validate(layout: Any, name: str) -> Any:
    def validate(compressed: Tensor, plain: Tensor, values: Tensor, size: Any) -> None:
        _validate_sparse_compressed_tensor_args(compressed, plain, values, size, layout)

    validate.__name__ = validate.__qualname__ = name
    validate.__doc__ = f"RuntimeError where a tensor of layout {layout} cannot have these parts."
    return validate


for _kind in ("csr", "csc", "bsr", "bsc"):
    _name = f"_validate_sparse_{_kind}_tensor_args"
    globals()[_name] = _validate(getattr(torch, f"sparse_{_kind}"), _name)

_tensor_classes = set(_dtypes.TENSOR_TYPES.values())

NAMES = frozenset(
    {name for name in globals() if name.startswith("_") and not name.startswith("__")}
    - {"CASTS", "_cast", "_symbolic", "_validate", "_kind", "_name", "_dtypes", "_with_names"}
)


def _with_names(packet: Any) -> Any:
    """An operator, whose results are a named tuple where its schema names them."""
    results = [result.name for result in getattr(packet, packet.overloads()[0])._schema.returns]
    if len(results) < 2 or not all(results):
        return packet
    kind = return_types._tuple(packet.__name__, results)

    def operator(*args: Any, **kwargs: Any) -> Any:
        return kind(*packet(*args, **kwargs))

    operator.__name__ = operator.__qualname__ = packet.__name__
    operator.__module__ = "taeda"
    operator.__doc__ = f"`torch.ops.aten.{packet.__name__}`: {', '.join(results)}."
    return torch._C._overridable(operator)


def __getattr__(name: str) -> Any:
    if name in OPERATORS:
        return _with_names(getattr(torch.ops.aten, name))
    found = _symbolic(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def has(name: str) -> bool:
    """Whether torch has a function of the name here."""
    return name in OPERATORS or name in NAMES or _symbolic(name) is not None
