"""Dimensions, shapes and strides: checks, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """The dimension counted from the front; IndexError outside of the tensor's `rank`.

    >>> from torch._prims_common import canonicalize_dim
    >>> canonicalize_dim(3, -1)
    2
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    rank = rank or 1
    if not -rank <= idx < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], "
            f"but got {idx})"
        )
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """`canonicalize_dim` of one dimension, or of a sequence of them."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, x, wrap_scalar) for x in indices)


def validate_idx(rank: int, idx: int) -> None:
    """AssertionError unless a canonical dimension is one of a tensor's; 0 is a scalar's too."""
    if not isinstance(idx, int) or not isinstance(rank, int):
        raise AssertionError(f"idx and rank must be int, got {type(idx)} and {type(rank)}")
    if not (0 <= idx < rank or idx == 0):
        raise AssertionError(f"idx {idx} is out of bounds for rank {rank}")


def validate_dimension_indices(rank: int, indices: Sequence[int]) -> None:
    """`validate_idx` of each."""
    for idx in indices:
        validate_idx(rank, idx)


def validate_exclusive_idx(rank: int, ex_idx: int) -> None:
    """AssertionError unless a dimension, or one behind the last, is meant."""
    if not (isinstance(ex_idx, int) and 0 < ex_idx <= rank):
        raise AssertionError(f"ex_idx {ex_idx} is out of bounds for rank {rank}")


def validate_dim_length(length: int) -> None:
    """AssertionError for a negative length."""
    if length < 0:
        raise AssertionError(f"length must be >= 0, got {length}")


def validate_shape(shape: Sequence[int]) -> None:
    """AssertionError unless a sequence of lengths."""
    if not isinstance(shape, Sequence):
        raise AssertionError(f"shape must be Sequence, got {type(shape)}")
    for length in shape:
        validate_dim_length(length)


def validate_strides(strides: Sequence[int]) -> None:
    """AssertionError unless a sequence of numbers that are not negative."""
    if not isinstance(strides, Sequence):
        raise AssertionError(f"strides must be Sequence, got {type(strides)}")
    if any(stride < 0 for stride in strides):
        raise AssertionError(f"strides must be >= 0, got {tuple(strides)}")


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    """RuntimeError where a dimension is named twice."""
    if len(dims) != len(set(dims)):
        raise RuntimeError("duplicate value in the list of dims")


def validate_memory_format(memory_format: Any) -> None:
    """RuntimeError for what is no memory format of strided tensors."""
    known = (
        taeda.contiguous_format, taeda.preserve_format, taeda.channels_last,
        taeda.channels_last_3d,
    )  # fmt: skip
    if memory_format not in known:
        raise RuntimeError(f"Received unknown memory format {memory_format}!")


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions a reduction goes over, counted from the front; all of them for None."""
    if dims is None:
        return tuple(range(len(shape)))
    found = tuple(canonicalize_dim(len(shape), idx) for idx in dims)
    validate_no_repeating_dims(found)
    return found


def compute_reduction_output_shape(
    shape: Sequence[int], dimensions: Sequence[int]
) -> tuple[int, ...]:
    """The shape without the dimensions that are reduced."""
    validate_dimension_indices(len(shape), dimensions)
    return tuple(length for i, length in enumerate(shape) if i not in dimensions)


def is_valid_permutation(rank: int, perm: Sequence[int]) -> bool:
    """Whether each dimension is named once."""
    return isinstance(perm, Sequence) and sorted(perm) == list(range(rank))


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list:
    """The items in the order of `perm`."""
    permuted = [-1] * len(perm)
    for i, source in enumerate(perm):
        permuted[i] = inp[source]
    return permuted


def invert_perm(perm: Sequence[int]) -> list[int]:
    """The permutation that takes `perm` back."""
    found = [-1] * len(perm)
    for i, source in enumerate(perm):
        found[source] = i
    return found


def same_shape(a: Sequence[int], b: Sequence[int], *, allow_rhs_unbacked: bool = False) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


is_same_shape = same_shape


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a tensor of `shape` can be expanded to `desired`."""
    if len(shape) > len(desired):
        return False
    pairs = zip(reversed(shape), reversed(desired))
    return all(length in (1, wanted) for length, wanted in pairs)


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """The shape with the length that -1 stands for; RuntimeError unless it has `numel` elements.

    >>> from torch._prims_common import infer_size
    >>> infer_size((2, -1), 6)
    (2, 3)
    """
    return tuple(taeda.empty(numel, device="meta").view(tuple(shape)).shape)


def infer_size_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """What two shapes broadcast to; RuntimeError where they do not."""
    return tuple(taeda.broadcast_shapes(tuple(a), tuple(b)))


def extract_dims_from_varargs(dims: Any) -> Any:
    """The dimensions of a call f(0, 1) or f((0, 1))."""
    return dims[0] if dims and isinstance(dims[0], Sequence) else dims


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """The shape of a call f(2, 3) or f((2, 3))."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    if validate:
        validate_shape(shape)
    return tuple(shape)


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Any:
    """The first tensor's shape; None without tensors."""
    scalars = None
    for x in args:
        if isinstance(x, Tensor):
            if not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x)):
                return x.shape
            scalars = x.shape
    return scalars


def is_cpu_scalar_tensor(a: Any) -> bool:
    """Whether it is a tensor without dimensions on the CPU."""
    return isinstance(a, Tensor) and a.ndim == 0 and a.device.type == "cpu"


def _tensors(args: Any, allow_cpu_scalar_tensors: bool) -> list[Tensor]:
    return [
        x
        for x in args
        if isinstance(x, Tensor) and not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x))
    ]


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors have different shapes."""
    for x in (tensors := _tensors(args, allow_cpu_scalar_tensors)):
        if x.shape != tensors[0].shape:
            raise RuntimeError(f"Shape {x.shape} is not the expected shape {tensors[0].shape}!")


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors are on different devices."""
    for x in (tensors := _tensors(args, allow_cpu_scalar_tensors)):
        if x.device != tensors[0].device:
            raise RuntimeError(
                f"Tensor on device {x.device} is not on the expected device {tensors[0].device}!"
            )


def check_same_dtype(*args: Any) -> None:
    """RuntimeError where tensors have different dtypes."""
    for x in (tensors := _tensors(args, False)):
        if x.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"Tensor with dtype {x.dtype} is not the expected dtype of {tensors[0].dtype}!"
            )


def compute_required_storage_length(
    shape: Sequence[int], strides: Sequence[int], storage_offset: int
) -> int:
    """How many elements a storage needs for a tensor of this layout.

    >>> from torch._prims_common import compute_required_storage_length
    >>> compute_required_storage_length((2, 3), (5, 1), 0)
    8
    """
    if not all(shape):
        return 0
    return 1 + storage_offset + sum((n - 1) * step for n, step in zip(shape, strides))


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; with ``row_major=False`` of one whose last two
    dimensions are exchanged."""
    validate_shape(shape)
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    found = tuple(reversed(strides))
    if row_major or len(shape) < 2:
        return found
    return (*found[:-2], 1, max(shape[-2], 1))


def _channels_last(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    if len(shape) != rank:
        raise RuntimeError(f"Only tensors of rank {rank} can use the channels_last memory format")
    order = [1, *range(rank - 1, 1, -1), 0]
    strides, step = [0] * rank, 1
    for i in order:
        strides[i] = step
        step *= max(shape[i], 1)
    return tuple(strides)


def make_channels_last_1d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an n c w tensor whose channels lie side by side."""
    return _channels_last(shape, 3)


def make_channels_last_2d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an n c h w tensor whose channels lie side by side."""
    return _channels_last(shape, 4)


def make_channels_last_3d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an n c d h w tensor whose channels lie side by side."""
    return _channels_last(shape, 5)


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of 3 to 5 dimensions whose channels lie side by side."""
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels_last format strides exist in {len(shape)} dimensions")
    return _channels_last(shape, len(shape))


def check_contiguous_sizes_strides(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a layout is contiguous; strides of lengths 1 do not count."""
    wanted = make_contiguous_strides_for(sizes)
    if not all(sizes):
        return True
    return all(n == 1 or step == want for n, step, want in zip(sizes, strides, wanted))


def is_contiguous(a: Tensor) -> bool:
    """Whether a tensor's elements lie row by row without gaps."""
    return a.is_contiguous()


# Sizes are numbers, of which one always knows.
is_contiguous_or_false = is_contiguous


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Whether a tensor of images or volumes has its channels side by side."""
    return any(
        a.ndim == rank and a.is_contiguous(memory_format=memory_format)
        for rank, memory_format in ((4, taeda.channels_last), (5, taeda.channels_last_3d))
    )


def is_contiguous_for_memory_format(a: Tensor, *, memory_format: Any) -> bool:
    """Whether a tensor has the layout of a memory format."""
    validate_memory_format(memory_format)
    return a.is_contiguous(memory_format=memory_format)


is_contiguous_for_memory_format_or_false = is_contiguous_for_memory_format


def suggest_memory_format(x: Any) -> Any:
    """The memory format that results of a tensor's layout take."""
    if x.layout is taeda.strided and is_channels_last_contiguous(x) and not x.is_contiguous():
        return taeda.channels_last if x.ndim == 4 else taeda.channels_last_3d
    return taeda.contiguous_format
