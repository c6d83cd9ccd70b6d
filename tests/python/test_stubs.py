"""The generated type stubs."""

import ast
from pathlib import Path

import pytest

import taeda as torch


def functions(name):
    """name -> its declarations in a stub of the package."""
    tree = ast.parse((Path(torch.__file__).parent / name).read_text())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(ast.unparse(node))
    return found


def test_functions_of_torch_are_declared_with_their_overloads():
    found = functions("_operators.pyi")
    assert {"add", "where", "zeros", "matmul"} <= found.keys()
    (add,) = found["add"]
    assert add.startswith(
        "def add(input: Tensor | _Number, other: Tensor | _Number, *, alpha: _Number=1, "
        'out: Tensor | None=None) -> Tensor:\n    """self + alpha * other, '
    )
    assert len(found["zeros"]) == 2 and "*size: _int" in found["zeros"][1]
    assert "-> _return_types.topk:\n    " in found["topk"][0]


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_functions_of_modules_are_all_declared(module):
    found = functions(f"{module}.pyi")
    names = set(vars(getattr(torch, module))) - {"matmul", "LinAlgError", "annotations"}
    assert {name for name in names if not name.startswith("_")} <= found.keys()


def test_methods_that_write_give_the_tensor_that_they_were_called_on():
    tree = ast.parse((Path(torch.__file__).parent / "_C.pyi").read_text())
    tensor = next(n for n in tree.body if getattr(n, "name", "") == "Tensor")
    returns = {e.name: ast.unparse(e.returns) for e in tensor.body if hasattr(e, "returns")}
    assert returns["add_"] == returns["zero_"] == returns["apply_"] == "Self"
    assert returns["add"] == "Tensor" and returns["allclose"] == "_bool"
