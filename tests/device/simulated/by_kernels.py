"""What tests of operators on a simulated device share: values, and comparison with the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import taeda

# Relative and absolute: the CPU computes float32 by vectors, the device by the C library.
TOLERANCE = {
    "float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (2e-5, 2e-6),
    "float64": (1e-11, 1e-12), "complex64": (3e-5, 3e-6), "complex128": (1e-11, 1e-12),
}  # fmt: skip
FLOATING = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
REAL = ["bool", *INTEGERS, *FLOATING]
NUMBERS = [*REAL, "complex64", "complex128"]


def values(dtype: str, sizes: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers within (-1, 1) and beyond; small ones for integers, not 0, which divides nothing."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return taeda.tensor(random.integers(0, 2, sizes).astype(bool))
    t = getattr(taeda, dtype)
    if not (t.is_floating_point or t.is_complex):
        low = 1 if dtype == "uint8" else -5
        drawn = random.integers(low, 6, sizes)
        return taeda.tensor(np.where(drawn == 0, 3, drawn)).to(t)
    drawn = random.normal(0, 1, sizes)
    if t.is_complex:
        drawn = drawn + 1j * random.normal(0, 1, sizes)
    return taeda.tensor(drawn).to(t)


def same(cuda: Any, cpu: Any, what: str) -> None:
    """Values, dtype, sizes and strides are equal; of several results, each."""
    if isinstance(cpu, tuple | list):
        assert len(cuda) == len(cpu)
        for a, b in zip(cuda, cpu):
            same(a, b, what)
        return
    if not isinstance(cpu, taeda.Tensor):
        assert cuda == cpu, what
        return
    assert cuda.device.type == "cuda" and cpu.device.type == "cpu"
    assert (cuda.dtype, cuda.shape, cuda.stride()) == (cpu.dtype, cpu.shape, cpu.stride()), what
    rtol, atol = TOLERANCE.get(str(cpu.dtype).removeprefix("torch."), (0, 0))
    wide = taeda.complex128 if cpu.dtype.is_complex else taeda.float64
    a, b = (t.cpu().to(wide).numpy() for t in (cuda, cpu))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=what)


def layouts(dtype: str, sizes: tuple[int, ...], seed: int = 0) -> dict[str, Any]:
    """Tensors of these sizes that lie differently in memory."""
    doubled = tuple(2 * n for n in sizes)
    wide = values(dtype, doubled, seed)
    return {
        "dense": values(dtype, sizes, seed),
        "transposed": values(dtype, sizes[::-1], seed).permute(*reversed(range(len(sizes)))),
        "every second": wide[tuple(slice(None, None, 2) for _ in sizes)],
        "repeated": values(dtype, (1, *sizes[1:]), seed).expand(sizes),
    }


def moved(t: Any) -> Any:
    """The tensor on the device, with the strides that it has here: to() leaves out gaps."""
    if t.numel() == 0:
        return t.to("cuda")
    spanned = 1 + sum((n - 1) * stride for n, stride in zip(t.shape, t.stride()))
    whole = t.detach().as_strided((spanned,), (1,), t.storage_offset()).to("cuda")
    return whole.as_strided(t.shape, t.stride()).requires_grad_(t.requires_grad)


def agree(call: Callable[..., Any], *tensors: Any, what: str = "") -> None:
    """The call gives the same with the tensors on the device as on the CPU."""
    expected = call(*tensors)
    same(call(*(moved(t) if t.dim() else t for t in tensors)), expected, what)


def with_gradients(call: Callable[..., Any], *tensors: Any) -> list[Any]:
    """The (first) result, and the gradients of a sum with weights of all floating tensors."""
    tensors = [
        t.detach().clone().requires_grad_(t.dtype.is_floating_point or t.dtype.is_complex)
        for t in tensors
    ]
    y = call(*tensors)
    y = y[0] if isinstance(y, tuple) else y
    weights = values(str(y.dtype).removeprefix("torch."), tuple(y.shape), 9).to(y.device)
    (y * weights).sum().abs().backward()
    return [y.detach(), *(t.grad for t in tensors)]
