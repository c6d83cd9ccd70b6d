"""Elementary functions keep within the bounds of docs/notes/accuracy.md over every exponent.

The page's tables are the source of the bounds: units in the last place of the true value, or of a
scale where that is larger. Floats are sampled; with TAEDA_ACCURACY_STEP=1 in the environment every
float is taken, some minutes a function, and `-rP` shows the largest error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
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


def erfinv(x: Any) -> Any:
    return special.erfinv(np.where(np.abs(x) <= 1, x, np.nan))  # SciPy's is slow outside


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
    "erf": special.erf, "erfc": special.erfc, "erfinv": erfinv, "lgamma": special.gammaln,
    "digamma": special.psi, "sigmoid": special.expit, "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.where(x > 20, x, np.logaddexp(0, x)), "logsigmoid": special.log_expit,
    "gelu": lambda x: x * special.ndtr(x), "gelu_tanh": gelu_tanh, "selu": selu, "sinc": sinc,
    "logit": special.logit, "polygamma": lambda x: special.polygamma(1, x),
}  # fmt: skip
# Where runs over all floats found the largest errors.
WORST: dict[str, list[float]] = {
    "cos": [3018.3232421875, 3.901991],
    "sin": [40508.5078125, 349.50256],
    "erf": [3.3540656566619873, 3.8916728],
    "tanh": [0.0077671753242611885],
    "atan": [1.0109959840774536],
    "erfinv": [0.008543295785784721],
    "exp": [59.27500534057617],
    "log": [0.7022969126701355],
    "log2": [1.4122793674468994],
    "tan": [3.9214515686035156],
    "expm1": [17.001972198486328],
    "exp2": [-0.45121559500694275],
    "log1p": [-8.940696716308594e-08],
    "sqrt": [4.701977123029457e-38],
    "rsqrt": [1.1827658286835154e-38],
}
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


def doubles(count: int) -> Any:
    """Doubles of every exponent and both signs, infinities and NaN among them."""
    random = np.random.default_rng(0)
    everywhere = random.integers(0, 1 << 64, count // 2, dtype=np.uint64).view(np.float64)
    common = random.standard_normal(count // 2) * 10 ** random.uniform(-3, 2.9, count // 2)
    return np.concatenate([everywhere, common])


STEP = int(os.environ.get("TAEDA_ACCURACY_STEP", (1 << 32) // 300_000 | 1))
# f(-x) = -f(x), f(-x) = f(x): the truth for positive numbers suffices.
ODD = {
    *("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "erfinv"),
    "softsign",
}
EVEN = {"cos", "cosh", "sinc"}


def floats(step: int, end: int = 1 << 32) -> Iterator[Any]:
    """Every step-th float, by bits below `end`, in arrays that fit into the cache."""
    bits = np.arange(1 << 14, dtype=np.uint32) * np.uint32(step)
    for start in range(0, end, step << 14):
        yield (bits + np.uint32(start)).view(np.float32)


def errors(name: str, got: Any, want: Any, x: Any) -> Any:
    """By how many ulp `got` differs from the truth, given with more digits; infinity where one is
    NaN or infinite and the other is not."""
    kind = np.finfo(got.dtype)
    rounded = want.astype(got.dtype)
    scale = {"": kind.tiny, "x": np.abs(x)}.get(SCALES[name])
    size = np.maximum(np.abs(rounded), got.dtype.type(SCALES[name]) if scale is None else scale)
    infinity = np.array(np.inf, size.dtype)
    exponent = size.view(f"i{size.itemsize}") & infinity.view(f"i{size.itemsize}")
    ulp = np.minimum(exponent.view(size.dtype), 2.0 ** (kind.maxexp - 1)) * kind.eps
    off = np.abs(got - want) / ulp
    other = ~np.isfinite(off)
    if other.any():
        got, rounded = got[other], rounded[other]
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        off[other] = np.where(same, 0, np.inf)
    return off


def check(name: str, kind: str, got: Any, want: Any, x: Any) -> float:
    """Raises where the bound does not hold; else returns the largest error."""
    off = errors(name, got, want, x)
    worst = off.argmax()
    assert off[worst] <= BOUNDS[name][kind], (
        f"{name}({x[worst]!r}) = {got[worst]!r}, want {want[worst]!r}: {off[worst]:.3f} ulp"
    )
    return float(off[worst])


def test_every_function_has_a_bound() -> None:
    assert set(ELEMENTARY) | set(SPECIAL) | set(PAIRS) | set(BY_SERIES) == set(BOUNDS)


# What is computed by series, on intervals. SciPy's serve as the truth for floats, mpmath's with 40
# digits for doubles.
BY_SERIES: dict[str, tuple[Callable[[Any], Any], str, float, float]] = {
    "i0": (special.i0, "besseli(0, x)", -80, 80),
    "i1": (special.i1, "besseli(1, x)", -80, 80),
    "i0e": (special.i0e, "besseli(0, x) * exp(-abs(x))", -1000, 1000),
    "i1e": (special.i1e, "besseli(1, x) * exp(-abs(x))", -1000, 1000),
    "modified_bessel_k0": (special.k0, "besselk(0, x)", 1e-3, 80),
    "modified_bessel_k1": (special.k1, "besselk(1, x)", 1e-3, 80),
    "scaled_modified_bessel_k0": (special.k0e, "besselk(0, x) * exp(x)", 1e-3, 80),
    "scaled_modified_bessel_k1": (special.k1e, "besselk(1, x) * exp(x)", 1e-3, 80),
    "erfcx": (special.erfcx, "exp(x**2) * erfc(x)", -9, 200),
    "ndtri": (special.ndtri, "-sqrt(2) * erfinv(1 - 2 * x)", 0.01, 0.99),
}


def spread(low: float, high: float, count: int) -> Any:
    """Numbers between these bounds, half of them within a few units of zero."""
    random = np.random.default_rng(0)
    near = random.uniform(max(low, -4), min(high, 4), count // 2)
    return np.concatenate([random.uniform(low, high, count // 2), near])


def by_mpmath(text: str, x: Any) -> Any:
    """The expression at each x, as long doubles."""
    mp = pytest.importorskip("mpmath")
    scope = {name: getattr(mp, name) for name in dir(mp)}
    with mp.workdps(40):
        exact = [eval(text, scope, {"x": mp.mpf(float(v))}) for v in x]
        parts = [(float(v), float(v - mp.mpf(float(v)))) for v in exact]
    return np.array([np.longdouble(high) + np.longdouble(low) for high, low in parts])


@pytest.mark.parametrize("name", BY_SERIES)
def test_series_of_floats(name: str) -> None:
    truth, _, low, high = BY_SERIES[name]
    x = np.float32(spread(low, high, 40_000))
    got = function(name)(torch.from_numpy(x)).numpy()
    check(name, "float", got, truth(x.astype(np.float64)), x)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a longer double")
@pytest.mark.parametrize("name", BY_SERIES)
def test_series_of_doubles(name: str) -> None:
    _, text, low, high = BY_SERIES[name]
    x = spread(low, high, 300)
    got = function(name)(torch.from_numpy(x)).numpy()
    check(name, "double", got, by_mpmath(text, x), x)


def off_by(name: str, text: str, x: Any) -> Any:
    """By how many ulp of the true value a function of doubles is off."""
    got = function(name)(torch.from_numpy(x)).numpy()
    want = by_mpmath(text, x)
    return np.abs(got - want) / np.spacing(np.abs(want.astype(x.dtype)))


def test_the_normal_distribution_in_double() -> None:
    x = spread(-30, 8, 300)
    assert (off_by("ndtr", "erfc(-x / sqrt(2)) / 2", x) <= 6 + 2 * x**2).all()
    text = "log(erfc(-x / sqrt(2)) / 2) if x < 0 else log1p(-erfc(x / sqrt(2)) / 2)"
    assert (off_by("log_ndtr", text, x) <= 6 + 2 * x**2).all()


def test_airy_function_in_double() -> None:
    x = spread(-3, 10, 300)
    assert (off_by("airy_ai", "airyai(x)", x) <= 400).all()
    x = np.linspace(10, 100, 100)
    assert (off_by("airy_ai", "airyai(x)", x) <= 16 + 2 * x**1.5).all()
    x = -np.geomspace(3, 1e4, 100)
    off = np.abs(function("airy_ai")(torch.from_numpy(x)).numpy() - by_mpmath("airyai(x)", x))
    assert (off <= 2.3e-16 * np.abs(x) ** 1.25 + 1e-15).all()


def test_special_functions_of_extreme_arguments() -> None:
    """Values from mpmath 1.3, with 50 digits."""
    p = torch.tensor([1e-320, 5e-324, 1e-305, 0.4999, 0.5 + 2**-30], dtype=torch.float64)
    want = [-38.26912534303265, -38.46740561714435, -37.3563460930671]
    want += [-0.00025066283008807492, 2.334479498333298e-09]
    assert torch.special.ndtri(p).tolist() == pytest.approx(want, rel=2e-15)
    assert torch.special.airy_ai(torch.tensor([1e300], dtype=torch.float64)).item() == 0
    a = torch.tensor([1e-20, 1e-30, 1e-5], dtype=torch.float64)
    q = torch.igammac(a, torch.tensor([1e-310, 1e-30, 1e-310], dtype=torch.float64)).tolist()
    want = [7.132241631632526e-18, 6.850033712491984e-29, 0.007106867638463068]
    assert q == pytest.approx(want, rel=1e-14)


def error_of_floats(name: str, x: Any) -> float:
    want = (ELEMENTARY | SPECIAL)[name](x.astype(np.float64))
    got = function(name)(torch.from_numpy(x)).numpy()
    if name in ODD | EVEN:
        mirrored = function(name)(torch.from_numpy(-x)).numpy()
        mirrored = np.where(np.isnan(got), got, -mirrored if name in ODD else mirrored)
        assert np.array_equal(mirrored.view(np.int32), got.view(np.int32)), f"{name}(-x)"
    return check(name, "float", got, want, x)


@pytest.mark.parametrize("name", [*ELEMENTARY, *SPECIAL])
def test_floats_of_every_exponent(name: str) -> None:
    worst = 0.0
    for x in floats(STEP, 1 << 31 if name in ODD | EVEN else 1 << 32):
        if name == "polygamma":  # SciPy's is for positive numbers
            x = np.abs(x[np.abs(x) > 1e-18])
        if not x.size:
            continue
        with np.errstate(all="ignore"):
            worst = max(worst, error_of_floats(name, x))
    print(f"{name}: at most {worst:.3f} ulp")


@pytest.mark.parametrize("name", WORST)
def test_floats_that_were_worst(name: str) -> None:
    error_of_floats(name, np.float32(WORST[name]))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a longer double")
@pytest.mark.parametrize("name", ELEMENTARY)
def test_doubles_of_every_exponent(name: str) -> None:
    x = doubles(60_000)
    with np.errstate(all="ignore"):
        want = ELEMENTARY[name](x.astype(np.longdouble))
        check(name, "double", function(name)(torch.from_numpy(x)).numpy(), want, x)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_floats(name: str) -> None:
    x = np.concatenate([*floats(42_949), np.float32(np.linspace(-50, 50, 100_001))])
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
