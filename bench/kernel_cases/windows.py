"""torch.signal.windows."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel, unary


def window(name: str, points: int = 4096, **options: Any) -> None:
    def make(torch: Any) -> Run:
        call = getattr(torch.signal.windows, name)
        return lambda: call(points, **options)

    kernel(f"windows.{name} of {points}")(make)


for shape in ("bartlett", "blackman", "cosine", "hann", "kaiser", "nuttall"):
    window(shape)
for shape in ("bartlett", "cosine", "hann"):
    window(shape, MEGA)
for shape in ("hann", "kaiser"):
    unary(
        f"windows: {shape}_window(400)",
        None,
        lambda torch, n, name=shape: getattr(torch, f"{name}_window")(n),
        of=lambda torch: 400,
    )
for shape in ("bartlett", "hann"):
    unary(
        f"windows: {shape}_window({MEGA})",
        None,
        lambda torch, n, name=shape: getattr(torch, f"{name}_window")(n),
        of=lambda torch: MEGA,
    )
window("gaussian", std=7.0)
window("general_hamming", alpha=0.54)
window("exponential")
window("general_cosine", a=[0.46, 0.23, 0.31])
