"""What docs/notes/expressions.md says of the table's expression language is what it does."""

import re
from pathlib import Path

import pytest
from gen.cpp import Table
from gen.expr import BUILTINS, CONSTANTS, SCALAR_METHODS, TENSOR_METADATA, Translator
from gen.schema import SchemaError
from gen.table import load
from gen.values import Value

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/notes/expressions.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)[-1].strip().splitlines()
TYPES = {
    "x": "T", "y": "T", "i": "T", "w": "T", "gy": "T", "n": "I", "dim": "I", "p": "S", "eps": "F",
    "keepdim": "B", "dims": "N", "reduction": "Y", "dtype": "D?",
}  # fmt: skip


@pytest.fixture(scope="module")
def translate():
    table = Table(load(ROOT / "ops"))
    env = {name: Value(name, kind) for name, kind in TYPES.items()}
    return lambda text: Translator(table.overloads, "here", env).expression(text)


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_translated(translate, text):
    assert translate(text).cpp


def test_every_name_is_listed():
    listed = [*TENSOR_METADATA, *SCALAR_METHODS, *BUILTINS, *CONSTANTS, "bool8"]
    unlisted = [n for n in listed if not re.search(rf"\b{n}\b", PAGE)]
    assert not unlisted


@pytest.mark.parametrize("name", ["bool8", "uint8", "int64", "bfloat16", "float32", "complex128"])
def test_names_of_dtypes_are_known_by_their_form(translate, name):
    assert translate(name) == Value(f"expr::{name}", "D")


@pytest.mark.parametrize(
    "text, message",
    [
        ("x if x else y", "a value of type T has no truth value"),
        ("no_such_operator(x)", "no operator called 'no_such_operator'"),
        ("unknown + 1", "unknown name 'unknown'"),
        ("x.sum('a')", "no overload of 'sum' takes"),
        ("[v for v in dims]", "is not part of the expression language"),
        ("lambda: x", "is not part of the expression language"),
    ],
)
def test_what_is_refused(translate, text, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        translate(text)
