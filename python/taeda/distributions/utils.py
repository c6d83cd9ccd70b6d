"""What distributions share: broadcasting of parameters, probabilities and logits, lazy values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.overrides import is_tensor_like
from taeda.types import Device as Device
from taeda.types import Number as Number

_Number = (int, float, bool)
euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape.

    Numbers take dtype and device of the first tensor, and the default dtype where there is none.
    ValueError for anything else.

    >>> from taeda.distributions.utils import broadcast_all
    >>> broadcast_all(torch.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, _Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    options: dict[str, Any] = (
        {"dtype": taeda.get_default_dtype()}
        if like is None
        else {"dtype": like.dtype, "device": like.device}
    )
    return taeda.broadcast_tensors(
        *(v if is_tensor_like(v) else taeda.tensor(v, **options) for v in values)
    )


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return taeda.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """`value` summed over its last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


def _full_like_batch(distribution: Any, like: Tensor, value: float) -> Tensor:
    """A constant for every element of a distribution's batch and event."""
    shape = distribution._extended_shape()
    return taeda.full(shape, value, dtype=like.dtype, device=like.device)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (binary), or of log probabilities up to a constant (last dim).

    >>> from taeda.distributions.utils import logits_to_probs
    >>> logits_to_probs(torch.tensor([0., 0.]))
    tensor([0.5000, 0.5000])
    """
    return taeda.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept an epsilon of their dtype away from 0 and 1."""
    eps = taeda.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (binary) or log probabilities, of clamped probabilities.

    >>> from taeda.distributions.utils import probs_to_logits
    >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    logits = taeda.log(clamped)
    return logits - taeda.log1p(-clamped) if is_binary else logits


class lazy_property:
    """A property that is computed once, with gradients recorded, and kept as an attribute.

    >>> from taeda.distributions.utils import lazy_property
    >>> class Squares:
    ...     @lazy_property
    ...     def value(self):
    ...         print("computed")
    ...         return 4
    >>> s = Squares()
    >>> s.value, s.value
    computed
    (4, 4)
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with taeda.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class shows of a lazy property: for documentation tools and subclasses."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _tril_mask(n: int, diag: int, device: Any) -> Tensor:
    index = taeda.arange(n, device=device)
    return index < index.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of (..., D, D) matrices on and below diagonal `diag`, row by row, as vectors.

    >>> from taeda.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(torch.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _tril_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices, zero above diagonal `diag`, filled row by row from the last dimension.

    ValueError where its size is none that such matrices have.

    >>> from taeda.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(torch.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    # n solves n (n + 1) / 2 + n diag - diag (diag + 1) / 2 = size, the last term for diag > 0 only.
    slope = 1 + 2 * diag
    root = (slope**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5
    n = (root - slope) / 2
    if round(n) - n > taeda.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _tril_mask(n, diag, vec.device)] = vec
    return mat
