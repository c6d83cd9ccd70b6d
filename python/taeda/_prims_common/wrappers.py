"""Decorators for operators written in Python: type promotion, and an ``out`` argument."""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.utils._pytree import tree_leaves, tree_map

from . import ELEMENTWISE_TYPE_PROMOTION_KIND, Number, elementwise_dtypes


def _maybe_convert_to_dtype(a: Any, dtype: taeda.dtype) -> Any:
    """Tensors and numbers, those in sequences too, as ones of a dtype."""
    if isinstance(a, Tensor):
        return a.to(dtype) if a.dtype != dtype else a
    if isinstance(a, Number):
        from . import dtype_to_type_ctor

        return dtype_to_type_ctor(dtype)(a)
    if isinstance(a, Sequence) and not isinstance(a, str):
        return tuple(_maybe_convert_to_dtype(x, dtype) for x in a)
    if a is None:
        return None
    raise ValueError(f"Received unsupported type {type(a)}. Expected TensorLike, Number, Sequence.")


def _maybe_resize_out(out: Tensor, shape: Any, memory_format: Any = None) -> Tensor:
    """`out` with this shape: empty ones are resized."""
    return out if out.shape == shape else out.resize_(shape)


def _safe_copy_out(*, copy_from: Tensor, copy_to: Tensor, exact_dtype: bool = False) -> Tensor:
    """Copies into `copy_to`; RuntimeError where its device or dtype cannot take it."""
    from . import can_safe_cast_to

    if copy_from.device != copy_to.device:
        raise RuntimeError(
            f"Attempting to copy from device {copy_from.device} to device {copy_to.device}, but "
            "cross-device copies are not allowed!"
        )
    if exact_dtype and copy_from.dtype != copy_to.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {copy_from.dtype} but got {copy_to.dtype} instead"
        )
    if not can_safe_cast_to(cast_from=copy_from.dtype, cast_to=copy_to.dtype):
        raise RuntimeError(
            f"Attempting to cast from {copy_from.dtype} to out tensor with dtype {copy_to.dtype}, "
            "but this can't be cast because it is not safe!"
        )
    return copy_to.copy_(copy_from)


class elementwise_type_promotion_wrapper:
    """Decorator: the arguments named are given to the function in the dtype that such an operator
    computes in, and its results come back in the dtype that it gives.

    >>> from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND
    >>> from torch._prims_common.wrappers import elementwise_type_promotion_wrapper
    >>> @elementwise_type_promotion_wrapper(
    ...     type_promoting_args=("a",),
    ...     type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT)
    ... def half(a):
    ...     return a / 2
    >>> half(torch.tensor([1, 2]))
    tensor([0.5000, 1.0000])
    """

    def __init__(
        self,
        *,
        type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND,
        type_promoting_args: Sequence[str] | None = None,
    ) -> None:
        self.kind, self.names = type_promotion_kind, type_promoting_args

    def __call__(self, fn: Callable) -> Callable:
        signature = inspect.signature(fn)

        @functools.wraps(fn)
        def promoted(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            given = [n for n in self.names or () if n in bound.arguments]
            leaves = tree_leaves([bound.arguments[n] for n in given])
            leaves = [x for x in leaves if isinstance(x, (Tensor, *Number))]
            computation, result = elementwise_dtypes(*leaves, type_promotion_kind=self.kind)
            for name in given:
                bound.arguments[name] = _maybe_convert_to_dtype(bound.arguments[name], computation)
            out = fn(*bound.args, **bound.kwargs)
            return tree_map(
                lambda x: _maybe_convert_to_dtype(x, result) if isinstance(x, Tensor) else x, out
            )

        promoted.__signature__ = signature  # type: ignore[attr-defined]
        return promoted


def out_wrapper(
    *out_names: str, exact_dtype: bool = False, pass_is_out: bool = False, **_: Any
) -> Callable[[Callable], Callable]:
    """Decorator: the function takes ``out``, a tensor or as many as there are names, into which its
    results are copied."""
    results = namedtuple("results", out_names) if len(out_names) > 1 else None  # type: ignore

    def decorate(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def wrapped(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if pass_is_out:
                kwargs["is_out"] = out is not None
            found = fn(*args, **kwargs)
            if out is not None:
                pairs = [(out, found)] if isinstance(found, Tensor) else list(zip(out, found))
                for target, value in pairs:
                    _maybe_resize_out(target, value.shape)
                    _safe_copy_out(copy_from=value, copy_to=target, exact_dtype=exact_dtype)
                found = out
            return results(*found) if results is not None else found

        return wrapped

    return decorate
