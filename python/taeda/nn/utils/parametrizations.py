"""Ready parametrizations: weight and spectral normalization."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from taeda.nn.modules.module import Module

from . import parametrize
from .weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _make_orthogonal(A: Tensor) -> Tensor:
    """The Q of A = QR whose R has a positive diagonal."""
    Q, R = taeda.linalg.qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix X to one with orthonormal columns, or rows where it is wide.

    "matrix_exp" and "cayley" map the skew-symmetric matrix of X's lower triangle, "householder"
    takes X's columns as reflections. With a base B the result is B Q, so that training starts
    from any orthogonal matrix (Lezcano-Casado 2019).
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        is_wide = X.size(-2) < X.size(-1)
        X = X.mT if is_wide else X
        Q = self._reflected(X) if self.orthogonal_map == "householder" else self._rotated(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if is_wide else Q

    def _rotated(self, X: Tensor) -> Tensor:
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = taeda.cat([X, X.new_zeros(n, n - k).expand((*X.shape[:-2], -1, -1))], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            Q = taeda.matrix_exp(A)
        else:
            identity = taeda.eye(n, dtype=A.dtype, device=A.device)
            left, right = (taeda.add(identity, A, alpha=a) for a in (-0.5, 0.5))
            Q = taeda.linalg.solve(left, right)
        return Q[..., :k]

    def _reflected(self, X: Tensor) -> Tensor:
        A = X.tril(-1)
        Q = taeda.linalg.householder_product(A, 2.0 / (1.0 + (A * A).sum(dim=-2)))
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @taeda.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        is_wide = Q.size(-2) < Q.size(-1)
        X = Q.mT if is_wide else Q
        if hasattr(self, "base"):
            self.base = self._completed(X)
            minus_identity = taeda.zeros_like(Q)
            minus_identity.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return minus_identity
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        A, tau = taeda.geqrf(X)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(taeda.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
        return A.mT if is_wide else A

    @staticmethod
    def _completed(Q: Tensor) -> Tensor:
        """A square orthogonal matrix that begins with the columns of Q, made orthonormal."""
        n, k = Q.shape[-2:]
        if n != k:
            more = taeda.randn((*Q.shape[:-2], n, n - k), dtype=Q.dtype, device=Q.device)
            return _make_orthogonal(taeda.cat([Q, more], dim=-1))
        identity = taeda.eye(k, dtype=Q.dtype, device=Q.device)
        eps = 10.0 * n * taeda.finfo(Q.dtype).eps
        is_orthogonal = taeda.allclose(Q.mH @ Q, identity, atol=eps)
        return Q.clone() if is_orthogonal else _make_orthogonal(Q)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a parameter's matrix (or batch of them) orthogonal, or its columns orthonormal.

    `orthogonal_map` is "matrix_exp" (the default for square and complex matrices), "cayley" or
    "householder"; `use_trivialization` multiplies by an orthogonal matrix, so that the
    parameter may be assigned any value.

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 3))
    >>> torch.dist(layer.weight.T @ layer.weight, torch.eye(2)) < 1e-5
    tensor(True)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    mapping = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, mapping, unsafe=True)
    return module


class _WeightNorm(Module):
    """``g v / |v|``, from (g, v)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Splits a parameter into magnitude (original0) and direction (original1).

    A state dict with the older names ``NAME_g`` and ``NAME_v`` loads too.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_older_names(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        older = (f"{prefix}{name}_g", f"{prefix}{name}_v")
        if all(key in state_dict for key in older):
            for i, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_older_names)
    return module


class _SpectralNorm(Module):
    """``weight / sigma``, sigma found by power iteration, one step a forward in training."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if dim >= weight.dim() or dim < -weight.dim():
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.dim()}, {weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but "
                f"got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            with taeda.no_grad():
                matrix = self._matrix(weight)
                h, w = matrix.size()
                u = matrix.new_empty(h).normal_(0, 1)
                v = matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            rest = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *rest)
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with taeda.no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a parameter by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )
    return module
