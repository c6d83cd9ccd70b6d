"""out= of another dtype than the result's: taken, or refused, where PyTorch takes or refuses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load
from tests.ops import samples as grid
from tests.ops.calls import compare

import taeda

torch = pytest.importorskip("torch")


def function(op: Op, framework: Any) -> Any:
    """The operator's function, which alone takes out=; None where there is none."""
    names = [name for name in op.python if not name.startswith("Tensor.")]
    for name in names:
        target = framework
        for part in name.removeprefix("torch.").split("."):
            target = getattr(target, part, None)
        if target is not None:
            return target
    return None


def results(op: Op, framework: Any, dtype: str, **out: Any) -> Any:
    args, options = grid.maker(op, framework, dtype).arguments(grid.samples(op)[0])
    return function(op, framework)(*args, **options, **out)


def takes_out(op: Op, dtype: str) -> bool:
    """Whether PyTorch has the operator's out= form and computes it in this dtype."""
    try:
        made = results(op, torch, dtype)
        if not isinstance(made, torch.Tensor):
            return False
        results(op, torch, dtype, out=torch.empty_like(made))
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    return True


# Of floating results PyTorch refuses complex out= in some, "not implemented" for the dtype it would
# compute in; taeda converts.
WIDER = {"ldexp"}
OPS = [
    op
    for op in load(Path(__file__).resolve().parents[2] / "ops")
    if "out" in op.variants
    and len(op.sig.returns) == 1
    and grid.samples(op)
    and function(op, torch)
    and op.name not in WIDER
]


def outcome(op: Op, framework: Any, dtype: str, given: str, shape: tuple[int, ...]) -> str:
    out = framework.empty(shape, dtype=getattr(framework, given))
    try:
        results(op, framework, dtype, out=out)
    except (TypeError, RuntimeError, NotImplementedError):
        return "raises"
    return f"takes {out.dtype}"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.ident)
def test_dtypes_of_out(op: Op) -> None:
    for dtype in ("float32", "int64"):
        if dtype not in grid.dtypes(op) or not takes_out(op, dtype):
            continue
        shape = tuple(results(op, torch, dtype).shape)
        for given in ("float64", "float32", "float16", "int64", "int32"):
            ours, theirs = (outcome(op, t, dtype, given, shape) for t in (taeda, torch))
            assert ours == theirs, f"{op.name} of {dtype} into {given}"


@pytest.mark.parametrize(
    "call",
    [
        "torch.sum(T([6e4] * 9).half(), 0, out=torch.empty((), dtype=torch.float64))",
        "torch.sum(v, 0, out=torch.empty((), dtype=torch.int64))",
        "torch.sum(v, 0, dtype=torch.float64, out=torch.empty(()))",
        "torch.prod(v, 0, out=torch.empty((), dtype=torch.float64))",
        "torch.mean(v.half() * 3e4, 0, out=torch.empty((), dtype=torch.float64))",
        "torch.cumsum(v, 0, out=torch.empty(4, dtype=torch.int64))",
        "torch.cumprod(v, 0, out=torch.empty(4, dtype=torch.float64))",
        "torch.bernoulli(torch.ones(3), out=torch.empty(3, dtype=torch.int64))",
        "torch.multinomial(torch.ones(1), 1, out=torch.empty(1))",
        "torch.neg(v, out=torch.empty(4, dtype=torch.float64))",
        "torch.sort(v, out=(torch.empty(4), torch.empty(4)))",
        "torch.ops.aten.neg.out(v, out=torch.empty(4, dtype=torch.float64))",
        "torch.ops.aten.cumsum.out(v, 0, out=torch.empty(4, dtype=torch.float64))",
    ],
)
def test_sums_are_computed_in_the_dtype_of_out(call: str) -> None:
    compare(call)


@pytest.mark.parametrize(
    "call",
    [
        "torch.abs(v + 1j, out=torch.empty(4, dtype=torch.float64))",
        "torch.abs(v + 1j, out=torch.empty(4, dtype=torch.complex64))",
        "torch.abs(v + 1j, out=torch.empty(4, dtype=torch.complex128))",
        "torch.abs(v, out=torch.empty(4, dtype=torch.float64))",
        "torch.lerp(v, v * 3, 0.5, out=torch.empty(4, dtype=torch.float64))",
        "torch.lerp(v, v * 3, v, out=torch.empty(4, dtype=torch.float64))",
        "torch.lerp(v, v, 0.5j)",
        "torch.cat([v, v], out=torch.empty(8, dtype=torch.int64))",
        "torch.column_stack([v, v], out=torch.empty(4, 2, dtype=torch.int64))",
        "torch.tensordot(x, x, 3, out=torch.empty((), dtype=torch.float64))",
        "torch.tensordot(x, x, 3, out=torch.empty(()))",
        "torch.fft.irfft(v, out=torch.empty(6, dtype=torch.complex64))",
        "torch.fft.hfft2(x, out=torch.empty(2, 3, 6, dtype=torch.complex64))",
        "torch.fft.ifft(v.double() + 0j, out=torch.empty(4, dtype=torch.complex64))",
        "torch.linalg.eigvals(torch.eye(2), out=torch.empty(2, dtype=torch.complex128))",
        "torch.cumsum(v, 0, out=torch.empty(4, dtype=torch.bool))",
        "torch.cumprod(v, 0, dtype=torch.bool)",
        "torch.std(v, 0, out=torch.empty((), dtype=torch.complex64))",
        "torch.std(x, 0, out=torch.empty(3, 4, dtype=torch.complex64))",
        "torch.var(v, 0, out=torch.empty((), dtype=torch.int64))",
        "torch.nanmean(v, out=torch.empty((), dtype=torch.int64))",
        "torch.nansum(u, out=torch.empty((), dtype=torch.bool))",
        "torch.nansum(v, out=torch.empty((), dtype=torch.complex64))",
        "torch.nansum(v, dtype=torch.complex64)",
        "torch.nansum(u, dtype=torch.complex64)",
        "torch.any(u, out=torch.empty((), dtype=torch.bool))",
        "torch.diff(v, out=torch.empty(3, dtype=torch.float64))",
        "torch.bernoulli(v.abs() / 3, out=torch.empty(4, dtype=torch.complex64))",
        "torch.normal(v, v.abs(), out=torch.empty(4, dtype=torch.int64))",
        "torch.squeeze_copy(x[:1], 0, out=torch.empty(3, 4))",
        "torch.squeeze_copy(x[:1], (0, 1), out=torch.empty(3, 4))",
        "torch.hash_tensor(v, out=torch.empty((), dtype=torch.uint64))",
        "torch.hash_tensor(v, out=torch.empty(()))",
    ],
)
def test_out_is_taken_or_refused_as_by_pytorch(call: str) -> None:
    compare(call)


@pytest.mark.parametrize(
    "call",
    [
        "v.add(1, out=torch.empty(4))",
        "v.exp(out=torch.empty(4))",
        "torch.flip(v, [0], out=torch.empty(4))",
        "torch.positive(v, out=torch.empty(4))",
        "torch.isinf(v, out=torch.empty(4, dtype=torch.bool))",
        "torch.masked_fill(v, v > 0, 1.0, out=torch.empty(4))",
        "torch.fft.fftshift(v, out=torch.empty(4))",
        "torch.trapezoid(v, out=torch.empty(()))",
        "F.l1_loss(v, v, out=torch.empty(()))",
        "F.one_hot(i, out=torch.empty(2, 3, 3, dtype=torch.int64))",
        "F.cosine_similarity(v, v, dim=0, out=torch.empty(()))",
        "F.gelu(v, out=torch.empty(4))",
        "F.softplus(v, out=torch.empty(4))",
        "F.linear(x, T([[1.0, 2.0, 3.0, 4.0]]), out=torch.empty(2, 3, 1))",
    ],
)
def test_functions_take_out_where_those_of_pytorch_do(call: str) -> None:
    compare(call)
