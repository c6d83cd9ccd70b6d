"""The generated type stub."""

import ast
from pathlib import Path

import taeda as torch


def test_the_stub_is_python_and_names_the_operators():
    stub = Path(torch.__file__).with_name("_C.pyi")
    groups = {node.name: node for node in ast.parse(stub.read_text()).body if hasattr(node, "name")}
    methods = {entry.name for entry in groups["Tensor"].body}
    assert {"add", "random_", "index_fill_"} <= methods
    assert {entry.name for entry in groups["_torch"].body} >= {"add", "where"}
