"""Values of expressions: C++ text with a type, and what becomes of one where another is wanted.

Types: T tensor, L list of tensors, I int, F float, B bool, S Scalar, N list of ints, Q list of
floats, Y str, D dtype, V device, G generator, M memory format, 0 None; "X?" optional; a tuple of
types for several results; "*" unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from .schema import TYPES, Argument, Signature


class Value(NamedTuple):
    cpp: str
    type: str | tuple[str, ...]


# What calls are given, by position and by name.
Args = list[Value]
Named = dict[str, Value]

# The C++ types that hold values, and those of locals; others are `auto`.
OWNERS = {kind.expr: kind.owner for kind in TYPES.values()}
LOCAL_TYPES: dict[str | tuple[str, ...], str] = {kind: OWNERS[kind] for kind in "IFBTNLSD"}


def plain(value: Value) -> str:
    """A value that C++ compares and prints; an optional one is taken to be there."""
    if value.type == "N":
        return f"IntSpan({value.cpp})"
    return f"({value.cpp}).value()" if str(value.type).endswith("?") else value.cpp


def common_type(a: Value, b: Value) -> tuple[str, str | tuple[str, ...]]:
    """The type of `a if c else b`: the C++ type that both sides are converted to, and ours."""
    kinds = {a.type, b.type}
    if "0" in kinds and "T" not in kinds:
        kind = str(b.type if a.type == "0" else a.type).removesuffix("?")
        return f"std::optional<{LOCAL_TYPES[kind]}>", f"{kind}?"
    common = next((k for k in "TNLSFI" if k in kinds), b.type)
    return LOCAL_TYPES.get(common, ""), common


# The parts of an `options` argument that expressions may name.
OPTIONS = ("dtype", "device")
# Parameter's type -> other types of values that C++ converts to it.
FITS = {"T": "IFBS0", "S": "IFB", "S?": "IFB", "F": "I", "G": "0"}


def converted(value: Value, param: Argument) -> str | None:
    """`value` as an argument of a C++ call; None where it does not fit. C++ converts numbers to
    Scalars and tensors, lists to spans, and values to optional ones by itself."""
    want, have = param.expr_type, str(value.type)
    if have == "I" and want in ("N", "N?"):
        return f"DimVector({max(param.repeat, 1)}, {value.cpp})"
    if (want, have) == ("M?", "Y"):
        return f"expr::memory_format({value.cpp})"
    optional = want.endswith("?") and have in (want[:-1], "0")
    return value.cpp if optional or have in (want, "*") or have in FITS.get(want, "") else None


def bind(sig: Signature, args: Args, kwargs: Named) -> list[str] | None:
    """C++ arguments for a call of `sig`, or None where it does not fit."""
    positional = [a.name for a in sig.args if not a.keyword_only and a.type != "options"]
    known = {n for a in sig.args for n in (OPTIONS if a.type == "options" else [a.name])}
    given = dict(zip(positional, args))
    if len(args) > len(positional) or given.keys() & kwargs or not kwargs.keys() <= known:
        return None
    given |= kwargs
    out = [text for a in sig.args if (text := _argument(a, given)) is not None]
    return out if len(out) == len(sig.args) else None


def _argument(param: Argument, given: Named) -> str | None:
    if param.type == "options":
        parts = [given[name].cpp if name in given else "std::nullopt" for name in OPTIONS]
        return f"expr::options({', '.join(parts)})"
    return converted(given[param.name], param) if param.name in given else param.cpp_default
