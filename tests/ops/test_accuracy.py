"""Elementary functions keep within the bounds of docs/notes/accuracy.md over every exponent.

The page's tables are the source of the bounds: units in the last place of the true value, or of a
scale where that is larger.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as special

import taeda as torch

F = torch.nn.functional
PAGE = Path(__file__).resolve().parents[2] / "docs" / "notes" / "accuracy.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]*\d[^|]*) \| (?:([^|]*) \| )?([^|]*)\|$", re.M)
SELU, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def bounds_of(text: str) -> dict[str, float]:
    """{"float": 1, "double": 1.5} of "1 float, 1.5 double"; of "2" both."""
    found = {kind: float(value) for value, kind in re.findall(r"([\d.]+) (float|double)", text)}
    return found or dict.fromkeys(("float", "double"), float(text))


BOUNDS: dict[str, dict[str, float]] = {}
SCALES: dict[str, str] = {}
for _names, _bounds, _scale, _ in ROW.findall(PAGE.read_text()):
    for _name in re.findall(r"`(\w+)`", _names):
        BOUNDS[_name] = bounds_of(_bounds)
        SCALES[_name] = _scale.strip()


def gelu_tanh(x: Any) -> Any:
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def selu(x: Any) -> Any:
    return SELU * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0)))


def sinc(x: Any) -> Any:
    return np.where(np.abs(x) > float(np.finfo(np.float32).max) / np.pi, np.nan, np.sinc(x))


# What NumPy computes in any precision, long double included.
ELEMENTARY: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "tanhshrink": lambda x: x - np.tanh(x),
    "elu": elu, "celu": elu, "softsign": lambda x: x / (1 + np.abs(x)),
}  # fmt: skip
# In double, for floats.
SPECIAL: dict[str, Callable[[Any], Any]] = {
    "erf": special.erf, "erfc": special.erfc, "erfinv": special.erfinv, "lgamma": special.gammaln,
    "digamma": special.psi, "sigmoid": special.expit, "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.where(x > 20, x, np.logaddexp(0, x)), "logsigmoid": special.log_expit,
    "gelu": lambda x: x * special.ndtr(x), "gelu_tanh": gelu_tanh, "selu": selu, "sinc": sinc,
    "logit": special.logit, "polygamma": lambda x: special.polygamma(1, x),
}  # fmt: skip
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "xlogy": special.xlogy, "xlog1py": special.xlog1py,
    "zeta": special.zeta,
}  # fmt: skip


def function(name: str) -> Callable[..., Any]:
    if name == "gelu_tanh":
        return lambda x: F.gelu(x, approximate="tanh")
    if name == "polygamma":  # the second derivative of log(gamma(x))
        return lambda x: torch.polygamma(1, x)
    return next(getattr(m, name) for m in (torch, torch.special, F) if hasattr(m, name))


def numbers(kind: str, count: int, seed: int = 0) -> Any:
    """Floats, or doubles, of every exponent and both signs, infinities and NaN among them."""
    if kind == "float":
        step = (1 << 32) // count | 1
        return np.arange(seed, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    random = np.random.default_rng(seed)
    everywhere = random.integers(0, 1 << 64, count // 2, dtype=np.uint64).view(np.float64)
    common = random.standard_normal(count // 2) * 10 ** random.uniform(-3, 2.9, count // 2)
    return np.concatenate([everywhere, common])


def check(name: str, kind: str, got: Any, want: Any, x: Any) -> None:
    """Compares with the truth, given with more digits."""
    rounded = want.astype(got.dtype)
    assert np.array_equal(np.isnan(got), np.isnan(rounded)), name
    infinite = np.isinf(rounded) | np.isinf(got)
    assert np.array_equal(got[infinite], rounded[infinite]), name
    finite = np.isfinite(rounded)
    got, want, rounded, x = got[finite], want[finite], rounded[finite], x[finite]
    scale = {"": np.finfo(got.dtype).tiny, "x": np.abs(x)}.get(SCALES[name])
    size = np.maximum(np.abs(rounded), float(SCALES[name]) if scale is None else scale)
    size = np.minimum(size, np.finfo(got.dtype).max).astype(got.dtype)
    ulp = (np.nextafter(size, got.dtype.type(np.inf)) - size).astype(want.dtype)
    ulp[~np.isfinite(ulp)] = np.spacing(np.finfo(got.dtype).max)
    off = np.abs(got.astype(want.dtype) - want) / ulp
    worst = off.argmax()
    assert off[worst] <= BOUNDS[name][kind], (
        f"{name}({x[worst]!r}) = {got[worst]!r}, want {want[worst]!r}: {off[worst]:.2f} ulp"
    )


def test_every_function_has_a_bound() -> None:
    assert set(ELEMENTARY) | set(SPECIAL) | set(PAIRS) == set(BOUNDS)


@pytest.mark.parametrize("name", [*ELEMENTARY, *SPECIAL])
def test_floats_of_every_exponent(name: str) -> None:
    x = numbers("float", 300_000)
    if name == "polygamma":  # SciPy's is for positive numbers
        x = np.abs(x[np.abs(x) > 1e-18])
    with np.errstate(all="ignore"):
        want = (ELEMENTARY | SPECIAL)[name](x.astype(np.float64))
        check(name, "float", function(name)(torch.from_numpy(x)).numpy(), want, x)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a longer double")
@pytest.mark.parametrize("name", ELEMENTARY)
def test_doubles_of_every_exponent(name: str) -> None:
    x = numbers("double", 60_000)
    with np.errstate(all="ignore"):
        want = ELEMENTARY[name](x.astype(np.longdouble))
        check(name, "double", function(name)(torch.from_numpy(x)).numpy(), want, x)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_floats(name: str) -> None:
    x = np.concatenate([numbers("float", 100_000), np.float32(np.linspace(-50, 50, 100_001))])
    y = np.random.default_rng(0).permutation(x)
    if name == "pow":
        x = np.abs(x)
    if name == "zeta":
        random = np.random.default_rng(0)
        x, y = np.float32(1.001 + random.random((2, 20_000)) * 40)
    with np.errstate(all="ignore"):
        want = PAIRS[name](x.astype(np.float64), y.astype(np.float64))
        got = function(name)(torch.from_numpy(x), torch.from_numpy(y)).numpy()
        check(name, "float", got, want, np.maximum(np.abs(x), np.abs(y)))


def test_zeta_in_double() -> None:
    """Values from mpmath 1.3, with 50 digits."""
    s = torch.tensor([30.75, 10.0, 2.0, 1.0078125, 120.5, 3.0], dtype=torch.float64)
    q = torch.tensor([10.0625, 0.5, 1e6, 7.25, 95.0, 1.0], dtype=torch.float64)
    want = torch.tensor(
        [
            1.5540458672027077e-31,
            1024.0174503557579,
            1.0000005000001667e-6,
            126.10372597172849,
            6.7573756467980221e-239,
            1.2020569031595943,
        ],
        dtype=torch.float64,
    )
    ulps = (torch.special.zeta(s, q) / want - 1).abs().max().item() / 2**-52
    assert ulps <= BOUNDS["zeta"]["double"]
