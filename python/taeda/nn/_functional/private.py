"""Parts of functions that layers of other packages call: ``F._in_projection`` and so on.

`taeda.nn.functional` finds them here when they are first named.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from taeda import Tensor
from taeda.nn import _reduction as _Reduction
from taeda.nn import grad as grad
from taeda.nn.modules.utils import _list_with_default as _list_with_default
from taeda.nn.modules.utils import _pair as _pair
from taeda.nn.modules.utils import _single as _single
from taeda.nn.modules.utils import _triple as _triple

from .attention import _canonical_mask as _canonical_mask
from .attention import _check_shapes as _mha_shape_check
from .attention import _linear, _project
from .attention import _none_or_dtype as _none_or_dtype
from .attention import _scaled_dot_product_attention as _scaled_dot_product_attention

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "_Reduction",
    "_canonical_mask",
    "_get_softmax_dim",
    "_in_projection",
    "_in_projection_packed",
    "_list_with_default",
    "_mha_shape_check",
    "_none_or_dtype",
    "_pair",
    "_scaled_dot_product_attention",
    "_single",
    "_triple",
    "_unpool_output_size",
    "_verify_batch_size",
    "_verify_spatial_size",
    "grad",
]

# The numbers by which torch.grid_sampler takes the modes of F.grid_sample.
GRID_SAMPLE_INTERPOLATION_MODES: dict[str, int] = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES: dict[str, int] = {"zeros": 0, "border": 1, "reflection": 2}


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value (..., e) projected by one weight (3e, e) and bias (3e).

    >>> q, k, v = F._in_projection_packed(*[torch.ones(2, 4)] * 3, torch.ones(12, 4))
    >>> q.shape
    torch.Size([2, 4])
    """
    parts = _project(q, k, v, w, b)
    return parts[0].contiguous(), parts[1].contiguous(), parts[2].contiguous()


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value projected by a weight and bias each, to the query's size."""
    size = q.size(-1)
    for name, x, weight, bias in (
        ("query", q, w_q, b_q),
        ("key", k, w_k, b_k),
        ("value", v, w_v, b_v),
    ):
        if weight.shape != (size, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(size, x.size(-1))}, but got {weight.shape}"
            )
        if bias is not None and bias.shape != (size,):
            raise AssertionError(f"expecting {name} bias shape of {(size,)}, but got {bias.shape}")
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that softmax goes over where none is given; warns."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _product(lengths: Sequence[int]) -> int:
    found = 1
    for length in lengths:
        found *= length
    return found


def _verify_batch_size(size: Sequence[int]) -> None:
    """ValueError where a channel has one value in all."""
    if size[0] * _product(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _verify_spatial_size(size: Sequence[int]) -> None:
    """ValueError where a channel of a sample has one value."""
    if _product(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )


def _unpool_output_size(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> list[int]:
    """The lengths that unpooling gives: `output_size`, checked, or the smallest that fit."""
    count = len(kernel_size)
    lengths = input.size()[-count:]
    default = [
        (n - 1) * step + kernel - 2 * pad
        for n, kernel, step, pad in zip(lengths, kernel_size, stride, padding)
    ]
    if output_size is None:
        return default
    wanted = list(output_size[2:] if len(output_size) == count + 2 else output_size)
    if len(wanted) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it "
            f"has a length of '{len(wanted)}'"
        )
    for d, (length, least, step) in enumerate(zip(wanted, default, stride)):
        if not least - step < length < least + step:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {d} must be between {least - step} and '
                f"{least + step})"
            )
    return wanted
