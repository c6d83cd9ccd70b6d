"""Values of expressions: C++ text with a type, and what becomes of one where another is wanted.

Types: T tensor, L list of tensors, I int, F float, B bool, S Scalar, N list of ints, Q list of
floats, Y str, D dtype, V device, G generator, M memory format, 0 None; "X?" optional; a tuple of
types for several results; "*" unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from .schema import TYPES, Argument, Signature


@dataclass
class Value:
    cpp: str
    type: str | tuple[str, ...]

    @property
    def is_optional(self) -> bool:
        return isinstance(self.type, str) and self.type.endswith("?")

    @property
    def is_number(self) -> bool:
        return self.type in ("I", "F", "B", "S")


# The C++ types of locals; others are `auto`.
LOCAL_TYPES: dict[str | tuple[str, ...], str] = {
    kind.expr: kind.owner for kind in TYPES.values() if kind.expr in "IFBTNLSD"
}


def number(value: Value) -> str:
    """A plain C++ number; an optional one is taken to be there."""
    return f"({value.cpp}).value()" if value.is_optional else value.cpp


def is_none(value: Value, negated: bool) -> str:
    sign = "" if negated else "!"
    if value.type == "T":
        return f"{sign}{value.cpp}.defined()"
    return f"{sign}{value.cpp}.has_value()"


def printable(value: Value) -> str:
    """What a message shows of it."""
    if value.type == "N":
        return f"IntSpan({value.cpp})"
    return f"{value.cpp}.value()" if value.is_optional else value.cpp


def returned(value: Value, cpp_type: str) -> str:
    """A function's result."""
    if cpp_type == "Tensor" and value.type == "0":
        return "Tensor()"
    return f"Tensor({value.cpp})" if cpp_type == "Tensor" and value.is_number else value.cpp


def common_type(a: Value, b: Value) -> tuple[str, str | tuple[str, ...]]:
    """The type of `a if c else b`: the C++ type that both sides are converted to, and ours."""
    kinds = {a.type, b.type}
    if "0" in kinds and "T" not in kinds:
        kind = str(b.type if a.type == "0" else a.type).removesuffix("?")
        return f"std::optional<{LOCAL_TYPES[kind]}>", f"{kind}?"
    for kind in ("T", "N", "L"):
        if kind in kinds:
            return LOCAL_TYPES[kind], kind
    if kinds == {"I"} or (kinds <= {"I", "F", "S"} and len(kinds) > 1):
        kind = next(k for k in ("S", "F", "I") if k in kinds)
        return LOCAL_TYPES[kind], kind
    return "", b.type


# --- arguments of calls ---

# Parameter's type -> value's type -> C++; where nothing is said here, both have to be the same.
CONVERSIONS = {
    "T": dict.fromkeys("IFBS", "Tensor(Scalar({}))"),
    "N?": {"N": "OptInts(IntSpan({}))", "N?": "expr::opt_ints({})"},
    "S": dict.fromkeys("IFB", "Scalar({})"),
    "S?": dict.fromkeys("IFB", "OptScalar(Scalar({}))"),
    "F": {"I": "{}"},
    "M?": {"Y": "expr::memory_format({})"},
}
NONE = {"T": "Tensor()", "G": "nullptr"}


def converted(value: Value, param: Argument) -> str | None:
    """`value` as an argument of a C++ call; None where it does not fit."""
    want, have = param.expr_type, value.type
    if have == "*":
        return value.cpp
    if have == "0":
        return NONE.get(want, "std::nullopt" if want.endswith("?") else None)
    if have == "I" and want in ("N", "N?"):
        repeated = Value(f"IntSpan(DimVector({max(param.repeat, 1)}, {value.cpp}))", "N")
        return f"OptInts({repeated.cpp})" if want == "N?" else repeated.cpp
    same = "{}" if want in (have, f"{have}?") else None
    pattern = CONVERSIONS.get(want, {}).get(str(have), same)
    return pattern and pattern.format(value.cpp)


def bind(sig: Signature, args: list[Value], kwargs: dict[str, Value]) -> list[str] | None:
    """C++ arguments for a call of `sig`, or None where it does not fit."""
    named = {a.name for a in sig.args}
    positional = [a for a in sig.args if not a.keyword_only and a.type != "options"]
    options = {k: v for k, v in kwargs.items() if k in ("dtype", "device") and k not in named}
    given = {param.name: value for param, value in zip(positional, args)}
    rest = {k: v for k, v in kwargs.items() if k not in options}
    if (
        len(args) > len(positional)
        or any(key in given or key not in named for key in rest)
        or (options and not any(a.type == "options" for a in sig.args))
    ):
        return None
    given |= rest
    out = [_argument(param, given, options) for param in sig.args]
    return None if None in out else [text for text in out if text is not None]


def _argument(param: Argument, given: dict[str, Value], options: dict[str, Value]) -> str | None:
    if param.type == "options":
        parts = [options[k].cpp if k in options else "std::nullopt" for k in ("dtype", "device")]
        return f"expr::options({', '.join(parts)})"
    if param.name not in given:
        return param.cpp_default
    return converted(given[param.name], param)
