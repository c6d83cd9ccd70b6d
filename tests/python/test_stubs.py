"""The generated type stubs."""

import ast
from pathlib import Path

import pytest

import taeda as torch
from taeda import _foreach


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


def declared_in_package():
    """The names that taeda's stub has, its own and those that it imports."""
    tree = ast.parse((Path(torch.__file__).parent / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    found = {a.asname for node in imports for a in node.names} | set(functions("__init__.pyi"))
    stars = [node.module for node in imports if node.names[0].name == "*"]
    assert "taeda._operators" in stars
    return found | {n for n in functions("_operators.pyi") if not n.startswith("_")}


def test_every_function_of_torch_among_pytorchs_operators_is_declared():
    rows = (Path(__file__).parents[2] / "tools" / "data" / "operators.csv").read_text().splitlines()
    names = {row.split(",")[0] for row in rows[1:]}
    names = {n for n in names if "." not in n and callable(getattr(torch, n, None))}
    assert len(names) > 300
    foreach = {n for n in dir(_foreach) if n.startswith("_foreach_")}
    assert names | foreach <= declared_in_package() | {"bool", "float", "int"}


def test_functions_of_lists_are_declared_with_their_forms():
    found = functions("_operators.pyi")
    assert found["_foreach_abs_"] == [
        "def _foreach_abs_(self: Sequence[Tensor]) -> Sequence[Tensor]:\n    ..."
    ]
    assert len(found["_foreach_add"]) == 4 and len(found["_foreach_sub_"]) == 3
    assert "other: Sequence[Tensor], *, alpha: _Number=1" in found["_foreach_add"][1]
    assert "self: _Number, exponent: Sequence[Tensor]" in found["_foreach_pow"][-1]
    assert "src: Sequence[Tensor], non_blocking: _bool=False" in found["_foreach_copy_"][0]


def test_methods_that_write_give_the_tensor_that_they_were_called_on():
    tree = ast.parse((Path(torch.__file__).parent / "_C.pyi").read_text())
    tensor = next(n for n in tree.body if getattr(n, "name", "") == "Tensor")
    returns = {e.name: ast.unparse(e.returns) for e in tensor.body if hasattr(e, "returns")}
    assert returns["add_"] == returns["zero_"] == returns["apply_"] == "Self"
    assert returns["add"] == "Tensor" and returns["allclose"] == "_bool"
