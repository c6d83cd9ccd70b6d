"""A few eigenpairs of a large symmetric matrix by LOBPCG: conjugate gradients on several vectors.

Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001); the basis
is kept orthonormal as in Duersch et al., "A robust and efficient implementation of LOBPCG", SIAM
J. Sci. Comput. 40 (2018). A step looks for the best vectors in the span of the present ones X, the
step before P and the preconditioned residuals W.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda as torch
from taeda._C import Tensor, _overridable
from taeda.autograd import Function

__all__ = ["lobpcg"]


def _product(matrix: Tensor | None, x: Tensor) -> Tensor:
    """matrix @ x, the matrix dense or sparse; None is the identity."""
    if matrix is None:
        return x
    return matrix @ x if matrix.layout == torch.strided else torch.sparse.mm(matrix, x)


def _orthonormal(x: Tensor, bx: Tensor, tol: float) -> Tensor:
    """(columns, rank): T such that x @ T has x^H B x the identity, where bx = B @ x."""
    gram = x.mH @ bx
    scale = gram.diagonal().real.clamp(min=torch.finfo(gram.dtype).tiny).rsqrt()
    values, vectors = torch.linalg.eigh(scale[:, None] * gram * scale)
    kept = values > tol * values[-1]
    return scale[:, None] * vectors[:, kept] * values[kept].rsqrt()


class LOBPCG:
    """The state of one matrix's iteration, which a tracker is given after each step.

    E, X, R and S are eigenvalues (n), eigenvectors (m, n), residuals (m, n) and the basis (m, up to
    3n); ivars, fvars, tvars and bvars what else changes. A tracker that sets
    ``bvars["force_stop"] = True`` ends it.
    """

    def __init__(
        self,
        A: Tensor,
        B: Tensor | None,
        X: Tensor,
        iK: Tensor | None,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[LOBPCG], Any] | None,
    ) -> None:
        self.A, self.B, self.iK, self.X = A, B, iK, X
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.E = X.new_zeros(iparams["n"]).real
        self.R = torch.zeros_like(X)
        self.S = X
        self.P: Tensor | None = None
        self.tvars: dict[str, Tensor] = {}
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": iparams["niter"]}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}

    def __str__(self) -> str:
        return "LOBPCG:\n" + "".join(f"  {name}={value}\n" for name, value in vars(self).items())

    def run(self) -> None:
        """Steps until the pairs have converged, the steps are used up or the tracker says so."""
        self.update()
        while not self.stop_iteration():
            self.update()

    def stop_iteration(self) -> bool:
        """Whether no step follows."""
        return (
            self.bvars.get("force_stop", False)
            or self.ivars["iterations_left"] == 0
            or self.ivars["converged_count"] >= self.iparams["k"]
        )

    def update(self) -> None:
        """One step, and a call of the tracker."""
        if self.ivars["istep"] == 0:
            self._set_norms()
        else:
            self.S = self._basis()
        self._rayleigh_ritz()
        self.update_residual()
        self.update_converged_count()
        self.ivars["iterations_left"] -= 1
        self.ivars["istep"] += 1
        if self.tracker is not None:
            self.tracker(self)

    def _set_norms(self) -> None:
        """Estimates of the matrices' norms, by which residuals are judged; an orthonormal X."""
        size = float(self.X.norm())
        self.fvars["X_norm"] = size
        self.fvars["A_norm"] = float(_product(self.A, self.X).norm()) / size
        self.fvars["B_norm"] = float(_product(self.B, self.X).norm()) / size
        self.S = self._orthogonalized(self.X, None)

    def _orthogonalized(self, x: Tensor, against: Tensor | None) -> Tensor:
        """B-orthonormal columns with the span of x, without that of `against`."""
        tol = torch.finfo(x.dtype).eps
        for _ in range(1 if self.method == "basic" else 2):
            if against is not None:
                x = x - against @ (_product(self.B, against).mH @ x)
            x = x @ _orthonormal(x, _product(self.B, x), tol)
        return x

    def _basis(self) -> Tensor:
        """[X, P, W], B-orthonormal; W of the pairs that have not converged."""
        known = self.X if self.P is None else torch.cat([self.X, self.P], 1)
        w = _product(self.iK, self.R[:, self.ivars["converged_count"] :])
        return torch.cat([known, self._orthogonalized(w, known)], 1)

    def _rayleigh_ritz(self) -> None:
        """X and E: the best vectors in the basis; P: what they have of others than the last X."""
        n = self.iparams["n"]
        values, z = torch.linalg.eigh(self.S.mH @ _product(self.A, self.S))
        if self.bparams["largest"]:
            values, z = values.flip(0), z.flip(1)
        if self.ivars["istep"] > 0:
            step = z[:, :n].clone()
            step[:n] = 0
            step -= z[:, :n] @ (z[:, :n].mH @ step)
            self.P = self.S @ (step @ _orthonormal(step, step, torch.finfo(z.dtype).eps))
        self.E, self.X = values[:n], self.S @ z[:, :n]

    def update_residual(self) -> None:
        """R = A X - B X E."""
        self.R = _product(self.A, self.X) - _product(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many pairs, from the first on, have a residual within the tolerance."""
        bound = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        error = self.R.norm(dim=0) / (self.X.norm(dim=0) * bound)
        self.tvars["rerr"] = error
        count = int((error < self.fparams["tol"]).cumprod(0).sum())
        self.ivars["converged_count"] = count
        return count


class _Differentiable(Function):
    """The eigenpairs of a dense symmetric matrix, with gradients."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor | None, options: dict) -> tuple:
        E, X = _solve(A, B, **options)
        ctx.save_for_backward(A, X, E)
        ctx.has_B, ctx.largest = B is not None, options["largest"] is not False
        return E, X

    @staticmethod
    def backward(ctx: Any, ge: Tensor, gx: Tensor) -> tuple:  # type: ignore[override]
        """X (ge X^H + ...): dx_i is the sum of q_j (q_j^H dA x_i) / (e_i - e_j) over j != i."""
        A, X, E = ctx.saved_tensors
        for refused, what in (
            (A.layout != torch.strided, "sparse input yet"),
            (A.is_complex(), "complex input yet"),
            (ctx.has_B, "backward with B != I yet"),
        ):
            if refused:
                raise ValueError(f"lobpcg.backward does not support {what}.")
        values, vectors = torch.linalg.eigh(A)
        if ctx.largest:
            values, vectors = values.flip(-1), vectors.flip(-1)
        gaps = E[..., None, :] - values[..., None]
        gaps.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)  # the pairs themselves
        gx = vectors @ ((vectors.mT @ gx) / gaps)
        return (X * ge[..., None, :] + gx) @ X.mT, None, None


def _of_one(A: Any, B: Any, X: Any, iK: Any, parameters: Any, method: str, tracker: Any) -> Any:
    """The state of a single matrix's iteration at its end."""
    m, n = parameters[0]["m"], parameters[0]["n"]
    if X is None:
        X = torch.randn((m, n), dtype=A.dtype, device=A.device)
    if X.shape != (m, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(m, n)}")
    ints, floats, bools = parameters
    state = LOBPCG(A, B, X, iK, ints, floats, bools, method, tracker)
    state.run()
    return state


def _solve(A: Tensor, B: Any, k: Any, X: Any, n: Any, iK: Any, niter: Any, tol: Any,
           largest: Any, method: Any, tracker: Any, parameters: tuple) -> tuple:  # fmt: skip
    """lobpcg without gradients."""
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    ints, floats, bools = (dict(given or {}) for given in parameters)
    ints = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter} | ints
    floats = {"tol": torch.finfo(A.dtype).eps ** 0.5 if tol is None else tol} | floats
    bools = {"largest": largest is not False} | bools
    rest: Any = (iK, (ints, floats, bools), method or "ortho", tracker)
    if A.dim() == 2:
        state = _of_one(A, B, X, *rest)
        return state.E[:k], state.X[:, :k]
    each: list[list] = [
        [None] * A.shape[:-2].numel() if x is None else list(x.reshape(-1, *x.shape[-2:]))
        for x in (A, B, X)
    ]
    states = []
    for i, of_matrix in enumerate(zip(*each, strict=True)):
        ints["batch_index"] = i
        states.append(_of_one(*of_matrix, *rest))
    E = torch.stack([state.E[:k] for state in states])
    vectors = torch.stack([state.X[:, :k] for state in states])
    return E.reshape(*A.shape[:-2], k), vectors.reshape(*A.shape[:-2], m, k)


@_overridable
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[LOBPCG], Any] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest eigenvalues of A x = e B x, (..., k), descending, and vectors (..., m, k).

    `A` (..., m, m) is symmetric, dense or a sparse matrix, `B` symmetric positive definite, the
    identity by default. `X` (..., m, n) is where to start, else `n` random vectors, 3n <= m; `iK` a
    preconditioner. With ``largest=False`` the smallest, ascending. Ends after `niter` steps (1000;
    -1: no limit) or at residuals of `tol` (the root of the dtype's epsilon). ``method="basic"``
    makes the basis orthonormal once a step, "ortho" twice. `tracker` is called with the state.
    Differentiable in a dense real `A` without `B`.

    >>> import taeda as torch
    >>> E, X = torch.lobpcg(torch.diag(torch.arange(9.0)), k=2)
    >>> torch.allclose(E, torch.tensor([8.0, 7.0]))
    True
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    if not (A.is_floating_point() or A.is_complex()):
        A = A.to(torch.get_default_dtype())
    is_ortho = method in (None, "ortho")
    given = (ortho_iparams, ortho_fparams, ortho_bparams) if is_ortho else (None, None, None)
    options: dict[str, Any] = {
        "k": k,
        "X": X,
        "n": n,
        "iK": iK,
        "niter": niter,
        "tol": tol,
        "largest": largest,
        "method": method,
        "tracker": tracker,
        "parameters": given,
    }
    if A.requires_grad or (B is not None and B.requires_grad):
        return _Differentiable.apply((A + A.mT) / 2, None if B is None else (B + B.mT) / 2, options)
    return _solve(A, B, **options)
