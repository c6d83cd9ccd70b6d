"""Signatures in PyTorch's schema language (gen/schema.py): what is read, and what is refused."""

from __future__ import annotations

import pytest
from gen.schema import SchemaError, parse


def test_arguments_are_read_with_their_defaults() -> None:
    sig = parse("f.out(Tensor self, int[2]? pad=[1, 2], *, str mode='same', Tensor?[] rest) -> int")
    assert (sig.name, sig.overload, sig.ident) == ("f", "out", "f_out")
    self, pad, mode, rest = sig.args
    assert (self.type, self.default, self.keyword_only) == ("Tensor", None, False)
    assert (pad.type, pad.default, pad.repeat) == ("int[]?", "[1, 2]", 2)
    assert (mode.type, mode.default, mode.keyword_only) == ("str", "'same'", True)
    assert (rest.type, rest.keyword_only) == ("Tensor?[]", True)


def test_a_written_argument_is_known() -> None:
    sig = parse("add_(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    assert (sig.mutates, sig.args[1].mutated, sig.returns[0].type) == (True, False, "Tensor")


def test_results_have_names() -> None:
    named = parse("f() -> (Tensor values, Tensor[] rest)")
    assert [(r.type, r.name) for r in named.returns] == [("Tensor", "values"), ("Tensor[]", "rest")]
    assert [r.name for r in parse("f() -> (Tensor, Tensor)").returns] == ["result0", "result1"]
    assert [r.name for r in parse("f() -> Tensor").returns] == ["result"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("f(Tensor self", "expected 'name(arguments) -> returns'"),
        ("1f(Tensor self) -> Tensor", "expected 'name(arguments) -> returns'"),
        ("f(Tensor) -> Tensor", "cannot read argument 'Tensor'"),
        ("f(int[2 x) -> Tensor", "cannot read argument 'int[2 x'"),
        ("f(Tensor self x) -> Tensor", "cannot read argument 'Tensor self x'"),
        ("f(Foo x) -> Tensor", "unknown type 'Foo' of argument 'x'"),
        ("f(layout x) -> Tensor", "unknown type 'layout' of argument 'x'"),
        ("f(options? x) -> Tensor", "unknown type 'options?' of argument 'x'"),
        ("f(Tensor x) -> Foo", "unknown type 'Foo' of result 'result'"),
    ],
)
def test_what_is_refused_is_named(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        parse(text)
    assert str(error.value) == f"{text}: {message}"
