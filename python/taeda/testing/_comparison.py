"""assert_close: equality up to tolerances, with a message that says where and by how much."""

from __future__ import annotations

import cmath
import collections.abc
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

# dtype -> (rtol, atol); other types compare exactly.
_TOLERANCES = {
    taeda.float16: (1e-3, 1e-5),
    taeda.bfloat16: (1.6e-2, 1e-5),
    taeda.float32: (1.3e-6, 1e-5),
    taeda.float64: (1e-7, 1e-7),
}


def default_tolerances(*inputs: Any) -> tuple[float, float]:
    """The (rtol, atol) of the least exact of the dtypes (or of the tensors' dtypes)."""
    dtypes = [i.dtype if isinstance(i, Tensor) else i for i in inputs]
    pairs = [_TOLERANCES.get(dtype.to_real(), (0.0, 0.0)) for dtype in dtypes]
    return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


class _Options:
    def __init__(self, rtol: float | None, atol: float | None, equal_nan: bool, **checks: bool):
        if (rtol is None) ^ (atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or omitted, "
                f"but got no {'rtol' if rtol is None else 'atol'}."
            )
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.checks = checks

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        return default_tolerances(*dtypes)


class _Mismatch(AssertionError):
    """A difference, and the path of items to it."""

    def __init__(self, text: str, path: tuple = ()) -> None:
        super().__init__(text)
        self.text = text
        self.path = path


def _close_text(kind: str, rtol: float, atol: float) -> str:
    return f"{kind} are not {'equal' if rtol == 0 and atol == 0 else 'close'}!"


def _difference_line(kind: str, value: float, allowed: float, index: Any, equality: bool) -> str:
    line = f"{kind} difference: {value}"
    if index is not None:
        line = f"Greatest {kind.lower()} difference: {value} at index {index}"
    return line if equality else f"{line} (up to {allowed} allowed)"


def _compare_tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    for name, check in (
        ("shape", True),
        ("layout", options.checks["check_layout"]),
        ("device", options.checks["check_device"]),
        ("dtype", options.checks["check_dtype"]),
    ):
        a, e = getattr(actual, name), getattr(expected, name)
        if check and a != e:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {a} != {e}.")
    if options.checks["check_stride"] and actual.stride() != expected.stride():
        raise _Mismatch(
            "The values for attribute 'stride()' do not match: "
            f"{actual.stride()} != {expected.stride()}."
        )
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.detach(), expected.detach()
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = taeda.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.is_meta:
        return
    actual, expected = _computable(actual), _computable(expected)
    matches = taeda.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    raise _Mismatch(_tensor_text(actual, expected, ~matches, rtol, atol))


def _computable(t: Tensor) -> Tensor:
    """A tensor of a storage type, which has no arithmetic, in a type that has."""
    if not t.dtype._is_storage_type:
        return t
    if t.is_complex():
        return t.to(taeda.complex64)
    return t.to(taeda.float32 if t.is_floating_point() else taeda.int64)


def _tensor_text(
    actual: Tensor, expected: Tensor, mismatches: Tensor, rtol: float, atol: float
) -> str:
    equality = rtol == 0 and atol == 0
    if actual.dim() == 0:
        return _number_text("Scalars", actual.item(), expected.item(), rtol, atol)
    count, total = int(mismatches.sum()), actual.numel()
    if not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(taeda.int64), expected.to(taeda.int64)
    absolute = (actual - expected).abs()
    absolute = absolute.masked_fill(~mismatches, 0)
    relative = (absolute / expected.abs()).masked_fill(~mismatches, 0)
    lines = [
        _close_text("Tensor-likes", rtol, atol),
        "",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for kind, values, allowed in (("Absolute", absolute, atol), ("Relative", relative, rtol)):
        flat = int(values.reshape(-1).argmax())
        index = []
        for size in reversed(values.shape):
            flat, position = divmod(flat, size)
            index.append(position)
        where = tuple(reversed(index))
        lines.append(_difference_line(kind, values[where].item(), allowed, where, equality))
    return "\n".join(lines)


def _number_text(kind: str, actual: Any, expected: Any, rtol: float, atol: float) -> str:
    equality = rtol == 0 and atol == 0
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected != 0 else float("inf")
    return "\n".join(
        (
            _close_text(kind, rtol, atol),
            "",
            f"Expected {expected} but got {actual}.",
            _difference_line("Absolute", absolute, atol, None, equality),
            _difference_line("Relative", relative, rtol, None, equality),
        )
    )


_NUMBER_DTYPES = {int: taeda.int64, float: taeda.float64, complex: taeda.complex128}


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if options.checks["check_dtype"] and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    dtypes = [_NUMBER_DTYPES[kind] for kind in map(type, (actual, expected))]
    rtol, atol = options.tolerances(*dtypes)
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    raise _Mismatch(_number_text("Scalars", actual, expected, rtol, atol))


def _as_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if type(value).__module__ == "numpy":
        return taeda.as_tensor(value)
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes))


def _compare(actual: Any, expected: Any, options: _Options, path: tuple = ()) -> None:
    try:
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise _Mismatch(
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
                )
            for i, (a, e) in enumerate(zip(actual, expected)):
                _compare(a, e, options, (*path, i))
        elif isinstance(actual, collections.abc.Mapping) and isinstance(
            expected, collections.abc.Mapping
        ):
            _compare_keys(actual, expected)
            for key in sorted(expected, key=str):
                _compare(actual[key], expected[key], options, (*path, key))
        else:
            _compare_values(actual, expected, options)
    except _Mismatch as mismatch:
        if not mismatch.path:
            mismatch.path = path
        raise


def _compare_keys(actual: Any, expected: Any) -> None:
    if actual.keys() == expected.keys():
        return
    missing = sorted(expected.keys() - actual.keys(), key=str)
    additional = sorted(actual.keys() - expected.keys(), key=str)
    raise _Mismatch(
        "The keys of the mappings do not match:\n"
        f"Missing keys in the actual mapping: {missing}\n"
        f"Additional keys in the actual mapping: {additional}"
    )


def _compare_values(actual: Any, expected: Any, options: _Options) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}")
        return
    if isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}")
        return
    numeric = all(
        isinstance(v, numbers.Number) and type(v) in _NUMBER_DTYPES for v in (actual, expected)
    )
    if numeric:
        _compare_numbers(actual, expected, options)
        return
    a, e = _as_tensor(actual), _as_tensor(expected)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if a is None or e is None or not (related or options.checks["allow_subclasses"]):
        if (type(actual) in _NUMBER_DTYPES and e is not None) or (
            a is not None and (type(expected) in _NUMBER_DTYPES)
        ):
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and "
                f"{type(expected)}."
            )
        if a is None and e is None and actual == expected and type(actual) is type(expected):
            return
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}."
        )
    _compare_tensors(a, e, options)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless ``|actual - expected| <= atol + rtol |expected|`` everywhere.

    For tensors, arrays, numbers, and sequences and mappings of them. Default tolerances depend on
    the dtype. Shapes, devices, dtypes and layouts must agree, unless switched off.
    """
    options = _Options(
        rtol,
        atol,
        equal_nan,
        allow_subclasses=allow_subclasses,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    try:
        _compare(actual, expected, options)
    except _Mismatch as mismatch:
        text = mismatch.text
        if mismatch.path:
            items = "".join(f"[{item!r}]" for item in mismatch.path)
            text += f"\n\nThe failure occurred for item {items}"
        if callable(msg):
            text = msg(text)
        elif msg is not None:
            text = msg
        raise AssertionError(text) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The old form of ``assert_close``: values only."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = taeda.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = taeda.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
