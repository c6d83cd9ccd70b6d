"""Operators that PyTorch makes of others, and that are functions or methods here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda._functions import private

from .registry import new

_functional: Any = taeda.nn.functional
#: schema -> what computes it
_SCHEMAS: dict[str, Callable[..., Any]] = {
    "_debug_has_internal_overlap(Tensor self) -> int": taeda._debug_has_internal_overlap,
    "_dim_arange(Tensor like, int dim) -> Tensor": private._dim_arange,
    "_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool": (
        taeda._has_compatible_shallow_copy_type
    ),
    "_is_zerotensor(Tensor self) -> bool": lambda x: False,
    "_nnpack_available() -> bool": lambda: False,
    "_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor": private._reshape_from_tensor,
    "_shape_as_tensor(Tensor self) -> Tensor": taeda._shape_as_tensor,
    "_use_cudnn_rnn_flatten_weight() -> bool": lambda: False,
    "_version(Tensor self) -> int": lambda x: x._version,
    "_to_cpu(Tensor[] tensors) -> Tensor[]": lambda tensors: [x.cpu() for x in tensors],
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, "
    "SymInt[] dilation, SymInt groups) -> Tensor": private._convolution_mode,
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
    "int total_length) -> (Tensor, Tensor)": private._pad_packed_sequence,
    "_pad_circular(Tensor self, SymInt[] pad) -> Tensor": (
        lambda x, pad: _functional.pad(x, pad, "circular")
    ),
    "_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor": (
        lambda x, dim, dtype=None: taeda.sparse.softmax(x, dim, dtype=dtype)
    ),
    "_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor": (
        lambda x, dim, dtype=None: taeda.sparse.log_softmax(x, dim, dtype=dtype)
    ),
    "_sparse_sum(Tensor self) -> Tensor": lambda x: taeda.sparse.sum(x),
    "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor": (
        lambda x, *, dtype: taeda.sparse.sum(x, dtype=dtype)
    ),
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor": (
        lambda x, dim, *, dtype: taeda.sparse.sum(x, dim, dtype)
    ),
    "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor": taeda.sparse.mm,
    "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]": lambda x: list(taeda.atleast_1d(*x)),
    "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]": lambda x: list(taeda.atleast_2d(*x)),
    "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]": lambda x: list(taeda.atleast_3d(*x)),
    "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, "
    "Scalar beta=1, Scalar alpha=1) -> Tensor": (
        lambda x, a, b, dtype, *, beta=1, alpha=1: taeda.baddbmm(
            x.to(dtype), a.to(dtype), b.to(dtype), beta=beta, alpha=alpha
        )
    ),
    "can_cast(ScalarType from_, ScalarType to) -> bool": taeda.can_cast,
    "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor": (
        lambda x, *, memory_format=None: x.chalf()
    ),
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor": (
        taeda.combinations
    ),
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor": taeda.ctc_loss,
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, "
    "Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor": (
        taeda.ctc_loss
    ),
    "cudnn_is_acceptable(Tensor self) -> bool": lambda x: False,
    "data(Tensor self) -> Tensor": lambda x: x.data,
    "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor": (
        lambda g, mask: g * mask
    ),
    "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor": (
        lambda g, mask: g * mask
    ),
    "flatten_dense_tensors(Tensor[] tensors) -> Tensor": (
        lambda tensors: taeda.cat([x.reshape(-1) for x in tensors])
    ),
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor": (
        taeda.frobenius_norm
    ),
    "get_device(Tensor self) -> int": taeda.get_device,
    "is_complex(Tensor self) -> bool": taeda.is_complex,
    "is_conj(Tensor self) -> bool": taeda.is_conj,
    "is_distributed(Tensor self) -> bool": taeda.is_distributed,
    "is_floating_point(Tensor self) -> bool": taeda.is_floating_point,
    "is_inference(Tensor self) -> bool": taeda.is_inference,
    "is_leaf(Tensor self) -> bool": lambda x: x.is_leaf,
    "is_neg(Tensor self) -> bool": taeda.is_neg,
    "is_nonzero(Tensor self) -> bool": taeda.is_nonzero,
    "is_signed(Tensor self) -> bool": taeda.is_signed,
    "is_vulkan_available() -> bool": lambda: False,
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, "
    "bool invert=False) -> Tensor": taeda.isin,
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, "
    "bool invert=False) -> Tensor": taeda.isin,
    "item(Tensor self) -> Scalar": lambda x: x.item(),
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor": (
        lambda x, keepdim=False: taeda.nuclear_norm(x, keepdim=keepdim)
    ),
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor": taeda.nuclear_norm,
    "output_nr(Tensor self) -> int": lambda x: x.output_nr,
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., "
    'str padding_side="right") -> Tensor': taeda.nn.utils.rnn.pad_sequence,
    "promote_types(ScalarType type1, ScalarType type2) -> ScalarType": taeda.promote_types,
    "resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor": (
        lambda x, template, *, memory_format=None: x.clone().resize_(template.shape)
    ),
    "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType": taeda.result_type,
    "result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType": taeda.result_type,
    "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType": taeda.result_type,
    "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType": taeda.result_type,
    "retains_grad(Tensor self) -> bool": lambda x: x.retains_grad,
    "size.int(Tensor self, int dim) -> int": lambda x, dim: x.size(dim),
    "slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, "
    "SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0]) -> Tensor": (
        lambda x, weight, kernel_size, bias=None, stride=1, padding=0: taeda.conv3d(
            x, weight, bias, stride, padding
        )
    ),
    "thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, "
    "SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0]) -> Tensor": (
        lambda x, weight, kernel_size, bias=None, stride=1, padding=0: taeda.conv2d(
            x, weight, bias, stride, padding
        )
    ),
    "smm(Tensor self, Tensor mat2) -> Tensor": taeda.smm,
    "special_ndtr(Tensor self) -> Tensor": taeda.special.ndtr,
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor": (
        taeda.sspaddmm
    ),
    "stride.int(Tensor self, int dim) -> int": lambda x, dim: x.stride(dim),
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor": (
        lambda x, dtype=None, *, masked_grad=None: x.to_dense(dtype, masked_grad=masked_grad)
    ),
    "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor": lambda x, n: x.to_sparse(n),
    "to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor": (
        lambda x, blocksize, dense_dim=None: x.to_sparse_bsc(blocksize, dense_dim)
    ),
    "to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor": (
        lambda x, blocksize, dense_dim=None: x.to_sparse_bsr(blocksize, dense_dim)
    ),
    "to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor": (
        lambda x, dense_dim=None: x.to_sparse_csc(dense_dim)
    ),
    "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor": (
        lambda x, dense_dim=None: x.to_sparse_csr(dense_dim)
    ),
    "type_as(Tensor self, Tensor other) -> Tensor": lambda x, other: x.type_as(other),
}


def _antialiased(mode: str) -> Callable[..., Tensor]:
    def resize(x: Tensor, size: Any, align_corners: bool, scales: Any) -> Tensor:
        return _functional.interpolate(
            x, size, scales, mode, align_corners, antialias=True, recompute_scale_factor=False
        )

    return resize


for _name in ("bicubic", "bilinear"):
    _SCHEMAS[
        f"_upsample_{_name}2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
        "float[]? scale_factors) -> Tensor"
    ] = _antialiased(_name)
for _schema, _function in _SCHEMAS.items():
    new(_schema)(_function)


for _name in private.CASTS:
    new(f"_cast_{_name}(Tensor self, bool non_blocking=False) -> Tensor")(
        getattr(private, f"_cast_{_name}")
    )

for _name, _bitwise in {
    "and": taeda.bitwise_and,
    "or": taeda.bitwise_or,
    "xor": taeda.bitwise_xor,
}.items():
    new(f"__{_name}__.Tensor(Tensor self, Tensor other) -> Tensor")(_bitwise)
    new(f"__{_name}__.Scalar(Tensor self, Scalar other) -> Tensor")(_bitwise)


@new("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]")
def unflatten_dense_tensors(flat: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """A flat tensor cut into tensors of others' sizes."""
    parts = flat.split([x.numel() for x in tensors])
    return [part.view(x.shape) for part, x in zip(parts, tensors, strict=True)]


@new("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor")
def cummaxmin_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    """Each gradient goes to the element that was the largest so far."""
    if not input.numel():
        return input
    return taeda.zeros_like(input).scatter_add(dim, indices, grad)


@new("gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor")
def gather_backward(grad: Tensor, x: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    """Each gradient goes to the element that was gathered; dense in any case."""
    return taeda.zeros_like(x).scatter_add(dim, index, grad)


@new(
    "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq, bool sparse) -> Tensor"
)
def embedding_backward(
    grad: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Tensor:
    """The gradient of an embedding's rows, dense in any case."""
    return taeda.ops.aten.embedding_dense_backward(
        grad, indices, num_weights, padding_idx, scale_grad_by_freq
    )


@new("infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor")
def infinitely_differentiable_gelu_backward(grad: Tensor, x: Tensor) -> Tensor:
    """g (Phi(x) + x phi(x))"""
    normal = taeda.exp(-0.5 * x * x) * 0.3989422804014327
    return grad * (taeda.special.ndtr(x) + x * normal)
