"""Matrix products, torch.nn.functional.linear, vdot."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import Run, kernel


@kernel("x @ y, 1024 x 1024", flops=2 << 30)
def product(torch: Any) -> Run:
    x, y = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: x @ y


@kernel("x @ x in double, 512 x 512")
def double_product(torch: Any) -> Run:
    x = torch.randn(512, 512, dtype=torch.float64)
    return lambda: x @ x


def products(rows: int, inner: int, columns: int, dtype: str) -> None:
    def make(torch: Any) -> Run:
        a, b = (
            torch.randn(*sizes, dtype=getattr(torch, dtype))
            for sizes in ((rows, inner), (inner, columns))
        )
        return lambda: a @ b

    kernel(f"x @ y in {dtype}, {rows} x {inner} x {columns}")(make)


for _sizes in ((512, 512, 32), (32, 512, 512), (64, 64, 64)):
    products(*_sizes, "float64")
for _sizes in ((512, 512, 512), (64, 64, 64)):
    products(*_sizes, "complex64")
products(256, 256, 256, "complex128")


@kernel("vdot, 64K complex64")
def complex_dot(torch: Any) -> Run:
    x, y = (torch.randn(1 << 16, dtype=torch.complex64) for _ in range(2))
    return lambda: torch.vdot(x, y)


@kernel("bmm, 64 x 128 x 128", flops=2 * 64 * 128**3)
def bmm(torch: Any) -> Run:
    x = torch.randn(64, 128, 128)
    return lambda: torch.bmm(x, x)


@kernel("bmm, 4096 x 16 x 16, second one transposed", flops=2 * 4096 * 16**3)
def small_bmm(torch: Any) -> Run:
    x = torch.randn(4096, 16, 16)
    return lambda: torch.bmm(x, x.transpose(1, 2))


@kernel("bmm, 65536 x 3 x 3", flops=2 * 65536 * 3**3)
def tiny_bmm(torch: Any) -> Run:
    x = torch.randn(65536, 3, 3)
    return lambda: torch.bmm(x, x)


@kernel("x @ y in bf16, 1024 x 1024", flops=2 << 30)
def half_product(torch: Any) -> Run:
    x, y = (torch.randn(1024, 1024).to(torch.bfloat16) for _ in range(2))
    return lambda: x @ y


@kernel("bmm in bf16, 64 x 128 x 128", flops=2 * 64 * 128**3)
def half_bmm(torch: Any) -> Run:
    x = torch.randn(64, 128, 128).to(torch.bfloat16)
    return lambda: torch.bmm(x, x)


@kernel("linear in bf16, 512 x 768 to 3072", flops=2 * 512 * 768 * 3072)
def half_linear(torch: Any) -> Run:
    sizes = (512, 768), (3072, 768), (3072,)
    x, w, b = (torch.randn(*size).to(torch.bfloat16) for size in sizes)
    return lambda: torch.nn.functional.linear(x, w, b)


@kernel("linear in bf16, 64 x 4096 to 4096", flops=2 * 64 * 4096 * 4096)
def large_half_linear(torch: Any) -> Run:
    x, w = (torch.randn(rows, 4096).to(torch.bfloat16) for rows in (64, 4096))
    return lambda: torch.nn.functional.linear(x, w)


@kernel("linear, 32 x 256 to 256", flops=2 * 32 * 256 * 256)
def linear(torch: Any) -> Run:
    x, w, b = torch.randn(32, 256), torch.randn(256, 256), torch.randn(256)
    return lambda: torch.nn.functional.linear(x, w, b)


@kernel("linear, 8 x 64 to 64")
def small_linear(torch: Any) -> Run:
    x, w, b = torch.randn(8, 64), torch.randn(64, 64), torch.randn(64)
    return lambda: torch.nn.functional.linear(x, w, b)
