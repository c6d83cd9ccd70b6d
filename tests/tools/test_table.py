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
