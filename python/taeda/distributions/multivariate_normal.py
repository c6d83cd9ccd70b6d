"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Distribution, Expandable
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors, whose batches broadcast."""
    return taeda.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """``x^T (L L^T)^-1 x`` for vectors (..., n) and lower triangular matrices (..., n, n).

    The batch of x ends with that of L or a multiple of it in each dimension; each matrix is solved
    once for all its vectors, (sample x i x n) split into the i that share it.
    """
    n, batch = bx.size(-1), bx.shape[:-1]
    matrices = bL.dim() - 2
    outer = len(batch) - matrices
    split: list[int] = list(bx.shape[:outer])
    for of_l, of_x in zip(bL.shape[:-2], bx.shape[outer:-1]):
        split += [of_x // of_l, of_l]
    firsts = list(range(outer, outer + 2 * matrices, 2))
    order = [*range(outer), *firsts, *(i + 1 for i in firsts), outer + 2 * matrices]
    x = bx.reshape([*split, n]).permute(order)
    flat_l = bL.reshape(-1, n, n)
    vectors = x.reshape(-1, flat_l.size(0), n).permute(1, 2, 0)
    squares = taeda.linalg.solve_triangular(flat_l, vectors, upper=False).pow(2).sum(-2)
    back = list(range(outer))
    for i in range(matrices):
        back += [outer + i, outer + matrices + i]
    return squares.t().reshape(x.shape[:-1]).permute(back).reshape(batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """L with ``L L^T = P^-1``, without inverting P.

    With both dimensions reversed P is L_r L_r^T, so L^-1 is L_r reversed and transposed.
    """
    reversed_factor = taeda.linalg.cholesky(taeda.flip(P, (-2, -1)))
    inverse = taeda.transpose(taeda.flip(reversed_factor, (-2, -1)), -2, -1)
    identity = taeda.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return taeda.linalg.solve_triangular(inverse, identity, upper=False)


def log_det_half(tril: Tensor) -> Tensor:
    """``log det(L L^T) / 2``"""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class FromMatrix:
    """Parameters that are one of a covariance matrix, its inverse and its Cholesky factor.

    ``_unbroadcasted_scale_tril`` is the factor, with the batch in which it was given.
    """

    def _set_matrix(self: Any, batch_shape: Size, **given: Tensor | None) -> None:
        for name, matrix in given.items():
            if matrix is not None:
                setattr(self, name, matrix.expand((*batch_shape, -1, -1)))

    def _set_factor(
        self: Any,
        covariance_matrix: Tensor | None,
        precision_matrix: Tensor | None,
        scale_tril: Tensor | None,
    ) -> None:
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = taeda.linalg.cholesky(covariance_matrix)
        else:
            assert precision_matrix is not None
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def _broadcasted(self: Any, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self: Any) -> Tensor:
        return self._broadcasted(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self: Any) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        return self._broadcasted(taeda.matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self: Any) -> Tensor:
        return self._broadcasted(taeda.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(FromMatrix, Expandable, Distribution):
    """Vectors ``loc + L z``, z standard normal, of covariance ``L L^T``.

    One of `covariance_matrix`, `precision_matrix` (its inverse) and `scale_tril` (L, the cheapest).

    >>> from taeda.distributions import MultivariateNormal
    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            name: matrix
            for name, matrix in (
                ("covariance_matrix", covariance_matrix),
                ("precision_matrix", precision_matrix),
                ("scale_tril", scale_tril),
            )
            if matrix is not None
        }
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            name = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = Size(taeda.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self._set_matrix(batch_shape, **given)
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._set_factor(covariance_matrix, precision_matrix, scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - log_det_half(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = constant + log_det_half(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)
