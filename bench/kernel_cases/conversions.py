"""Conversions of dtypes, where, masked_fill, clamp."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, matrices, unary

unary("clamp(-1, 1)", 32 * MEGA, lambda torch, x: x.clamp(-1, 1))

unary("float to bfloat16", 24 * MEGA, lambda torch, x: x.bfloat16())
unary("float to int64", 48 * MEGA, lambda torch, x: x.long())
binary(
    "where",
    52 * MEGA,
    lambda torch, c, x, y: torch.where(c, x, y),
    lambda torch: (torch.rand(2048, 2048) > 0.5, *matrices(torch)),
)
binary(
    "masked_fill",
    36 * MEGA,
    lambda torch, x, m: x.masked_fill(m, 0.0),
    lambda torch: (torch.randn(2048, 2048), torch.rand(2048, 2048) > 0.5),
)

for wide, narrow in (
    ("float", "float8_e4m3fn"),
    ("float", "float8_e5m2"),
    ("float", "float8_e4m3fnuz"),
    ("float", "float8_e8m0fnu"),
    ("float", "uint16"),
    ("uint16", "float"),
    ("uint32", "uint8"),
    ("int32", "bfloat16"),
    ("float", "int32"),
    ("bfloat16", "int32"),
    ("float8_e5m2", "float"),
    ("complex64", "complex32"),
):
    unary(
        f"{wide} to {narrow}",
        None,
        lambda torch, x, dtype=narrow: x.to(getattr(torch, dtype)),
        of=lambda torch, dtype=wide: (torch.rand(1024, 1024) * 100).to(getattr(torch, dtype)),
    )
