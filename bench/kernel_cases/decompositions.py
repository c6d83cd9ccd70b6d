"""torch.linalg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases.registry import Run, kernel


def decomposition(name: str, n: int, batch: int = 0, dtype: str = "float32") -> None:
    """DECOMPOSITIONS[name] of a positive-definite matrix, or of a batch of them."""

    def make(torch: Any) -> Run:
        a = torch.randn(*([batch] if batch else []), n, n, dtype=getattr(torch, dtype))
        a = a @ a.mH / n + torch.eye(n, dtype=a.dtype)
        call = DECOMPOSITIONS[name]
        return lambda: call(torch, a)

    title = f"linalg.{name} of {f'{batch} x ' if batch else ''}{n} x {n}"
    kernel(title + ("" if dtype == "float32" else f" {dtype}"))(make)


DECOMPOSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda torch, a: torch.linalg.inv(a),
    "solve": lambda torch, a: torch.linalg.solve(a, a),
    "cholesky": lambda torch, a: torch.linalg.cholesky(a),
    "lu_factor": lambda torch, a: torch.linalg.lu_factor(a),
    "qr": lambda torch, a: torch.linalg.qr(a),
    "det": lambda torch, a: torch.linalg.det(a),
    "lstsq": lambda torch, a: torch.linalg.lstsq(a, a),
    "ldl_factor": lambda torch, a: torch.linalg.ldl_factor(a),
    "matrix_exp": lambda torch, a: torch.linalg.matrix_exp(a),
    "solve_triangular": lambda torch, a: torch.linalg.solve_triangular(a, a, upper=True),
    "eigh": lambda torch, a: torch.linalg.eigh(a),
    "svd": lambda torch, a: torch.linalg.svd(a, False),
    "eigvals": lambda torch, a: torch.linalg.eigvals(a),
    "svdvals": lambda torch, a: torch.linalg.svdvals(a),
    "eigvalsh": lambda torch, a: torch.linalg.eigvalsh(a),
}
# which take ten times as long as the others
SLOW = ("eigh", "svd", "eigvals", "svdvals", "eigvalsh")
for name in DECOMPOSITIONS:
    decomposition(name, 256 if name in SLOW else 512)
    decomposition(name, 64)
    decomposition(name, 16, 64 if name in SLOW else 256)
for name in ("inv", "det", "cholesky", "lu_factor", "qr"):
    decomposition(name, 4, 4096)
    decomposition(name, 4)
decomposition("eigh", 32, 16, "float64")
decomposition("eigvalsh", 48, 8, "float64")
decomposition("svdvals", 4, 1024)
for name in ("inv", "cholesky", "qr", "lstsq", "eigh", "matrix_exp"):
    decomposition(name, 256, dtype="float64")
    decomposition(name, 64, dtype="complex64")
decomposition("qr", 4, 512, "complex64")
decomposition("qr", 32, 8, "complex64")


def solved(n: int, batch: int = 0) -> None:
    """linalg.lu_solve of factored matrices, for four columns."""

    def make(torch: Any) -> Run:
        a = torch.randn(*([batch] if batch else []), n, n)
        factors, b = torch.linalg.lu_factor(a @ a.mH / n + torch.eye(n)), a[..., :4]
        return lambda: torch.linalg.lu_solve(*factors, b)

    kernel(f"linalg.lu_solve of {f'{batch} x ' if batch else ''}{n} x {n}")(make)


solved(512)
solved(16, 64)
solved(4, 1024)


@kernel("ormqr of 1024 x 4 x 4")
def multiplied(torch: Any) -> Run:
    a = torch.randn(1024, 4, 4)
    reflectors, scales = torch.geqrf(a)
    return lambda: torch.ormqr(reflectors, scales, a)
