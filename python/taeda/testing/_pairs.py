"""Comparisons of two values, each kind of values with a pair class of its own.

`originate_pairs` takes sequences and mappings apart and finds for each two items the first class
that supports them; `compare` raises an `ErrorMeta` where they differ.
"""

from __future__ import annotations

import abc
import cmath
import collections.abc
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import taeda
from taeda import Tensor

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


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: tuple = ()
) -> tuple[float, float]:
    """Those that are given, both or none, or the default ones."""
    if (rtol is None) ^ (atol is None):
        raise ErrorMeta(
            ValueError,
            "Both 'rtol' and 'atol' must be either specified or omitted, "
            f"but got no {'rtol' if rtol is None else 'atol'}.",
            id=id,
        )
    if rtol is not None and atol is not None:
        return rtol, atol
    return default_tolerances(*inputs)


def _close_text(kind: str, rtol: float, atol: float) -> str:
    return f"{kind} are not {'equal' if rtol == 0 and atol == 0 else 'close'}!"


def _difference_line(kind: str, value: float, allowed: float, index: Any, equality: bool) -> str:
    line = f"{kind} difference: {value}"
    if index is not None:
        line = f"Greatest {kind.lower()} difference: {value} at index {index}"
    return line if equality else f"{line} (up to {allowed} allowed)"


def _computable(t: Tensor) -> Tensor:
    """A tensor of a storage type, which has no arithmetic, in a type that has."""
    if not t.dtype._is_storage_type:
        return t
    if t.is_complex():
        return t.to(taeda.complex64)
    return t.to(taeda.float32 if t.is_floating_point() else taeda.int64)


def _tensor_text(
    actual: Tensor, expected: Tensor, mismatches: Tensor, rtol: float, atol: float, kind: str
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
        _close_text(kind, rtol, atol),
        "",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for which, values, allowed in (("Absolute", absolute, atol), ("Relative", relative, rtol)):
        flat = int(values.reshape(-1).argmax())
        index = []
        for size in reversed(values.shape):
            flat, position = divmod(flat, size)
            index.append(position)
        where = tuple(reversed(index))
        lines.append(_difference_line(which, values[where].item(), allowed, where, equality))
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


class ErrorMeta(Exception):
    """A difference: the type and text of the error to raise, and the path of items to it."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple = ()) -> None:
        super().__init__(msg)
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error, with another text, or one made of its own by a function."""
        text = self.msg
        if self.id:
            text += f"\n\nThe failure occurred for item {''.join(f'[{i!r}]' for i in self.id)}"
        if callable(msg):
            text = msg(text)
        elif msg is not None:
            text = msg
        return self.type(text)


class UnsupportedInputs(Exception):
    """What a pair's constructor raises for values that another class may compare."""


class Pair(abc.ABC):
    """Two values of one kind; parameters that are of no use to it are ignored."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple = (), **unknown: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: Any) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: tuple = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=self.id if not id else id)

    @abc.abstractmethod
    def compare(self) -> None:
        """Raises an ErrorMeta where the values differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or names and values, that describe the pair beside the values."""
        return []

    def __repr__(self) -> str:
        shown = [f"id={self.id}", f"actual={self.actual}", f"expected={self.expected}"]
        for item in self.extra_repr():
            name, value = (item, getattr(self, item)) if isinstance(item, str) else item
            shown.append(f"{name}={value}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ObjectPair(Pair):
    """Any objects: they must be equal."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.",
                            id=self.id) from error  # fmt: skip
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """None and anything."""

    def __init__(self, actual: Any, expected: Any, **other: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _numpy_type(name: str) -> tuple[type, ...]:
    """A type of NumPy's, where that is imported."""
    import sys

    numpy = sys.modules.get("numpy")
    return (getattr(numpy, name),) if numpy is not None else ()


class BooleanPair(Pair):
    """Two booleans."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple = (), **other: Any) -> None:
        kinds = (bool, *_numpy_type("bool_"))
        self._check_inputs_isinstance(actual, expected, cls=kinds)
        super().__init__(bool(actual), bool(expected), id=id, **other)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


_NUMBER_DTYPES = {int: taeda.int64, float: taeda.float64, complex: taeda.complex128}


class NumberPair(Pair):
    """Two numbers, close up to tolerances that follow from their types."""

    def __init__(
        self, actual: Any, expected: Any, *, id: tuple = (), rtol: float | None = None,
        atol: float | None = None, equal_nan: bool = False, check_dtype: bool = False, **other: Any,
    ) -> None:  # fmt: skip
        kinds = (int, float, complex, *_numpy_type("number"))
        self._check_inputs_isinstance(actual, expected, cls=kinds)
        actual, expected = (
            value if type(value) in _NUMBER_DTYPES else value.item() for value in (actual, expected)
        )
        super().__init__(actual, expected, id=id, **other)
        dtypes = (_NUMBER_DTYPES[type(value)] for value in (actual, expected))
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(
                AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}."
            )
        if actual == expected:
            return
        if self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return
        difference = abs(actual - expected)
        if cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(expected):
            return
        self._fail(AssertionError, _number_text("Scalars", actual, expected, self.rtol, self.atol))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


class TensorLikePair(Pair):
    """Two tensors, or what a tensor can be made of: metadata, then values up to tolerances."""

    def __init__(
        self, actual: Any, expected: Any, *, id: tuple = (), allow_subclasses: bool = True,
        rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
        check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
        check_stride: bool = False, **other: Any,
    ) -> None:  # fmt: skip
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or not (allow_subclasses or type(actual) is type(expected)):
            self._inputs_not_supported()
        actual, expected = self._to_tensor(actual), self._to_tensor(expected)
        super().__init__(actual, expected, id=id, **other)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _to_tensor(self, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value
        try:
            return taeda.as_tensor(value)
        except Exception:
            self._inputs_not_supported()

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        self._compare_attributes(actual, expected)
        if actual.is_meta or expected.is_meta:
            return
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        for name, check in (
            ("shape", True),
            ("layout", self.check_layout),
            ("device", self.check_device),
            ("dtype", self.check_dtype),
            ("stride()", self.check_stride),
        ):
            if not check:
                continue
            a, e = (
                (x.stride() if name == "stride()" else getattr(x, name)) for x in (actual, expected)
            )
            if a != e:
                self._fail(
                    AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}."
                )

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            dtype = taeda.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout != expected.layout:
            actual, expected = (
                x.to_dense() if x._is_any_sparse() else x for x in (actual, expected)
            )
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        actual, expected = actual.detach(), expected.detach()
        kind = "Tensor-likes"
        if actual._is_any_sparse():
            kind = f"Sparse {str(actual.layout).rpartition('_')[2].upper()}"
            actual, expected = self._compare_patterns(actual, expected, kind)
            kind += " values"
        self._compare_regular_values_close(
            _computable(actual), _computable(expected),
            rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan, identifier=kind,
        )  # fmt: skip

    def _compare_patterns(self, actual: Tensor, expected: Tensor, kind: str) -> tuple:
        """The values of two sparse tensors of one layout, whose indices must be equal."""
        for what, method in (("sparse dimensions", "sparse_dim"), ("specified values", "_nnz")):
            a, e = getattr(actual, method)(), getattr(expected, method)()
            if a != e:
                text = (
                    f"The number of {what} in {kind.lower()[:7]}{kind[7:]} tensors does not match"
                )
                self._fail(AssertionError, f"{text}: {a} != {e}")
        if actual.layout is taeda.sparse_coo:
            self._compare_indices(actual._indices(), expected._indices(), f"{kind} indices")
            return actual._values(), expected._values()
        by_rows = actual.layout in (taeda.sparse_csr, taeda.sparse_bsr)
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        for name in names:
            a, e = (getattr(x, name)().to(taeda.int64) for x in (actual, expected))
            self._compare_indices(a, e, f"{kind} {name}")
        return actual.values(), expected.values()

    def _compare_indices(self, actual: Tensor, expected: Tensor, kind: str) -> None:
        self._compare_regular_values_close(
            actual, expected, rtol=0, atol=0, equal_nan=False, identifier=kind
        )

    def _compare_regular_values_close(
        self, actual: Tensor, expected: Tensor, *, rtol: float, atol: float, equal_nan: bool,
        identifier: str = "Tensor-likes",
    ) -> None:  # fmt: skip
        matches = taeda.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if not matches.all():
            text = _tensor_text(actual, expected, ~matches, rtol, atol, identifier)
            self._fail(AssertionError, text)

    def extra_repr(self) -> Sequence[str]:
        return (
            "rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout",
            "check_stride",
        )  # fmt: skip


def _is_sequence(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, (str, bytes))


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (collections.abc.Sequence,),
    mapping_types: tuple[type, ...] = (collections.abc.Mapping,),
    id: tuple = (),
    **options: Any,
) -> list[Pair]:
    """The pairs of all items of two values, which must be of the same structure."""
    kinds: dict[str, Any] = {
        "pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types
    }  # fmt: skip
    if _is_sequence(actual, sequence_types) and _is_sequence(expected, sequence_types):
        if len(actual) != len(expected):
            raise ErrorMeta(
                AssertionError,
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                id=id,
            )
        keys: Any = range(len(actual))
    elif isinstance(actual, mapping_types) and isinstance(expected, mapping_types):
        _compare_keys(actual, expected, id)
        keys = sorted(expected, key=str)  # type: ignore[call-overload]
    else:
        return [_pair(actual, expected, pair_types, id, options)]
    return [
        pair
        for key in keys
        for pair in originate_pairs(actual[key], expected[key], id=(*id, key), **kinds, **options)
    ]


def _compare_keys(actual: Any, expected: Any, id: tuple) -> None:
    if actual.keys() == expected.keys():
        return
    missing = sorted(expected.keys() - actual.keys(), key=str)
    additional = sorted(actual.keys() - expected.keys(), key=str)
    raise ErrorMeta(
        AssertionError,
        "The keys of the mappings do not match:\n"
        f"Missing keys in the actual mapping: {missing}\n"
        f"Additional keys in the actual mapping: {additional}",
        id=id,
    )


def _pair(actual: Any, expected: Any, types: Sequence[type[Pair]], id: tuple, options: Any) -> Pair:
    """Of the first class that supports the values."""
    for kind in types:
        try:
            return kind(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(
                f"Originating a {kind.__name__}() at item {''.join(str([i]) for i in id)} with\n\n"
                f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                f"{type(expected).__name__}(): {expected}\n\nresulted in the unexpected exception "
                "above."
            ) from error
    raise ErrorMeta(
        TypeError,
        "No comparison pair was able to handle inputs of type "
        f"{type(actual)} and {type(expected)}.",
        id=id,
    )


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (collections.abc.Sequence,),
    mapping_types: tuple[type, ...] = (collections.abc.Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """What differs, one for each pair of items; TypeError and the like are raised."""
    try:
        pairs = originate_pairs(
            actual, expected, pair_types=pair_types, sequence_types=sequence_types,
            mapping_types=mapping_types, **options,
        )  # fmt: skip
    except ErrorMeta as error:
        raise error.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error)
    return found
