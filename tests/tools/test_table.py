"""What the operator table refuses (gen/table.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from gen.schema import SchemaError
from gen.table import load

ENTRY = """
- op: twice(Tensor self) -> Tensor
  expr: self + self
  test: {%s}
"""


def loaded(folder: Path, test: str) -> dict:
    (folder / "one.yaml").write_text(ENTRY % test)
    return load(folder)[0].test


@pytest.mark.parametrize("key", ["grad", "gradgrad", "forward_ad"])
def test_a_derivative_is_left_unchecked_for_a_reason_only(tmp_path: Path, key: str) -> None:
    assert loaded(tmp_path, f'{key}: "a staircase"') == {key: "a staircase"}
    for nothing in ("false", "true", '""', "null"):
        with pytest.raises(SchemaError, match=rf"one.yaml:2: .*'{key}' is the reason"):
            loaded(tmp_path, f"{key}: {nothing}")


def test_conjugates_are_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "- op: f(Tensor self) -> Tensor\n  pointwise: F\n  grad: gy\n  antiholomorphic: [other]\n"
    )
    with pytest.raises(SchemaError, match="other"):
        load(tmp_path)


def test_what_a_file_says_first_holds_for_its_entries(tmp_path: Path) -> None:
    entry = "- op: f(Tensor self) -> Tensor\n  expr: self + self\n"
    (tmp_path / "one.yaml").write_text(f"- file: {{optimize: size}}\n{entry}")
    assert [op.optimize for op in load(tmp_path)] == ["size"]
    (tmp_path / "one.yaml").write_text(f"- file: {{optimise: size}}\n{entry}")
    with pytest.raises(SchemaError, match=r"ops/one\.yaml:1: unknown key 'optimise'"):
        load(tmp_path)
    (tmp_path / "one.yaml").write_text(f"- file: {{optimize: space}}\n{entry}")
    with pytest.raises(SchemaError, match="optimize is one of"):
        load(tmp_path)


def test_twins_share_what_does_not_depend_on_their_dimensions(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(
        """
- op:
    1: pool1d(Tensor input, int[1] size) -> Tensor
    3: pool3d(Tensor input, int[3] size) -> Tensor
  python: ["nn.functional.pool{N}d"]
  autocast: {3: float32}
  check:
    - input.dim() > {N}: "pool{N}d: got {input.dim()} dimensions"
    - 3: {"len(size) == 3": "three sizes"}
  doc: ["Windows of {N} dimensions.", {3: " Volumes."}]
  test: {samples: {1: ["x(4), 2"], 3: ["x(4, 4, 4), 2"]}}
  expr: {1: one(input, size), 3: "three(input, size, {N})"}
"""
    )
    one, three = load(tmp_path)
    assert (one.name, three.name) == ("pool1d", "pool3d")
    assert (one.python, three.python) == (["nn.functional.pool1d"], ["nn.functional.pool3d"])
    assert (one.autocast, three.autocast) == (None, "float32")
    assert one.check == [("input.dim() > 1", "pool1d: got {input.dim()} dimensions")]
    assert three.check[1] == ("len(size) == 3", "three sizes")
    assert (one.doc, three.doc) == (
        "Windows of 1 dimensions.",
        "Windows of 3 dimensions. Volumes.",
    )
    assert (one.test["samples"], three.expr) == (["x(4), 2"], "three(input, size, 3)")
