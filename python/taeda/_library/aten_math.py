"""PyTorch's spellings of choices, norms, deviations and factorizations."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from .spelling import aten, define, define_out, ours, spells


@spells("_where")
def _(condition: Any, self: Any, other: Any) -> tuple:
    return aten.where.self, (condition, self, other), {}, None


def _clamp(self: Any, *bounds: Any) -> tuple:
    of_tensors = any(isinstance(bound, Tensor) for bound in bounds)
    return (aten.clamp.Tensor if of_tensors else aten.clamp.default), (self, *bounds), {}, None


@spells("clamp_between")
def _(self: Any, low: Any, high: Any) -> tuple:
    return _clamp(self, low, high)


@spells("clamp_below")
def _(self: Any, low: Any) -> tuple:
    return _clamp(self, low)


@spells("clamp_above")
def _(self: Any, high: Any) -> tuple:
    return _clamp(self, None, high)


# --- reductions ---


@spells("_vector_norm")
def _(self: Any, order: float, dim: Any, keepdim: bool, dtype: Any) -> tuple:
    rest = () if dim is None and not keepdim else (dim, keepdim) if keepdim else (dim,)
    args = (self,) if order == 2 and not rest else (self, order, *rest)
    return aten.linalg_vector_norm.default, args, {} if dtype is None else {"dtype": dtype}, None


@spells("_logsumexp")
def _(self: Any, dim: int, keepdim: bool) -> tuple:
    return aten.logsumexp.default, (self, [dim], *([True] if keepdim else [])), {}, None


def _deviation(name: str) -> None:
    @spells(f"_{name}")
    def _(self: Any, dim: Any, correction: Any, keepdim: bool) -> tuple:
        kwargs = {"correction": correction, **({"keepdim": True} if keepdim else {})}
        return getattr(aten, name).correction, (self, dim), kwargs, None


for _name in ("var", "std"):
    _deviation(_name)


# --- factorizations ---

_SVD = define(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> "
    "(Tensor U, Tensor S, Tensor Vh)"
)(lambda A, full=False, uv=True, *, driver=None: ours._linalg_svd(A, full, uv))
_EIGH = define(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> '
    "(Tensor eigenvalues, Tensor eigenvectors)"
)(lambda A, uplo="L", v=True: ours._linalg_eigh(A, uplo.upper() == "U", v))
for _op in (_SVD, _EIGH):
    define_out(_op)


@spells("_linalg_svd")
def _(A: Any, full_matrices: bool, compute_uv: bool) -> tuple:
    return _SVD, (A, full_matrices, compute_uv), {}, None


@spells("_linalg_eigh")
def _(A: Any, upper: bool, compute_v: bool) -> tuple:
    return _EIGH, (A, "U" if upper else "L", compute_v), {}, None


@spells("_linalg_inv")
def _(A: Any) -> tuple:
    return aten.linalg_inv_ex.default, (A,), {}, None


@spells("_linalg_cholesky")
def _(A: Any, upper: bool) -> tuple:
    return aten.linalg_cholesky_ex.default, (A,), {"upper": True} if upper else {}, None
