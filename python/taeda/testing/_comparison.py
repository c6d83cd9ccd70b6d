"""assert_close: equality up to tolerances, with a message that says where and by how much."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.testing._pairs import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    TensorLikePair,
    UnsupportedInputs,
    default_tolerances,
    get_tolerances,
    not_close_error_metas,
    originate_pairs,
)

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_allclose",
    "assert_close",
    "default_tolerances",
    "get_tolerances",
    "not_close_error_metas",
    "originate_pairs",
]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless ``|actual - expected| <= atol + rtol |expected|`` everywhere.

    For tensors, arrays, numbers, and sequences and mappings of them. Default tolerances depend on
    the dtype. Shapes, devices, dtypes and layouts must agree, unless switched off.
    """
    errors = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if errors:
        raise errors[0].to_error(msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The old form of ``assert_close``: values only."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = taeda.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = taeda.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
