"""All that the generator writes for one composite, one pointwise and one kernel operator.

What changes there is seen in review. After a change that is meant:
    .venv/bin/python tests/tools/test_generated_text.py
"""

import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "generated"
OPERATORS = ["dist", "xlog1py", "frexp"]  # those of docs/adding-an-operator.md


@cache
def show_op():
    loader = SourceFileLoader("show_op", str(ROOT / "tools" / "show_op"))
    module = module_from_spec(spec_from_loader("show_op", loader))
    loader.exec_module(module)
    return module


@cache
def files():
    return {name.removeprefix("generated/"): text for name, text in show_op().made().items()}


def kind(file):
    """A file without the name of its first operator, which depends on others: src/autograd."""
    folder, _, name = file.rpartition("/")
    pieces = ("src", "python", "methods", "loops")
    return f"{folder}/{name.split('_')[0]}" if folder in pieces else file


def generated(name):
    parts = []
    for file, text in sorted(files().items()):
        found = show_op().passages(text, name)
        if found:
            parts.append("\n".join([f"──── {kind(file)}", *found]))
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("name", OPERATORS)
def test_the_generated_text_is_the_recorded_one(name):
    recorded = (FOLDER / f"{name}.txt").read_text()
    assert generated(name) == recorded, f"if this is meant: {sys.executable} {__file__}"


if __name__ == "__main__":
    for name in OPERATORS:
        (FOLDER / f"{name}.txt").write_text(generated(name))
