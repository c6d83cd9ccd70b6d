"""What the operator table refuses (gen/table.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gen.cpp import Table
from gen.schema import SchemaError
from gen.table import load
from tests.ops.samples import samples

ROOT = Path(__file__).resolve().parents[2]

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


KERNEL = """
- op: f(Tensor self) -> Tensor
  kernel: f
  out: {result: [self.sizes(), self.dtype()]}
  grad: none
"""


@pytest.mark.parametrize("said", ["expr: g(self)", 'no_definition: "a loop: tests/ops/test_f.py"'])
def test_a_kernel_says_what_it_computes_or_why_not(tmp_path: Path, said: str) -> None:
    (tmp_path / "one.yaml").write_text(KERNEL)
    with pytest.raises(SchemaError, match="has 'expr' or 'no_definition'"):
        load(tmp_path)
    (tmp_path / "one.yaml").write_text(f"{KERNEL}  {said}\n")
    assert load(tmp_path)[0].is_leaf


def test_a_composite_needs_no_reason(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        '- op: f(Tensor self) -> Tensor\n  expr: self\n  no_definition: "none"\n'
    )
    with pytest.raises(SchemaError, match="others not"):
        load(tmp_path)


def test_no_definition_leads_back_to_its_operator(tmp_path: Path) -> None:
    circle = KERNEL + "  expr: g(self)\n- op: g(Tensor self) -> Tensor\n  expr: f(self)\n"
    (tmp_path / "one.yaml").write_text(circle)
    with pytest.raises(SchemaError, match="leads back"):
        Table(load(tmp_path)).check_definitions()
    (tmp_path / "one.yaml").write_text(circle.replace("expr: f(self)", "expr: self"))
    Table(load(tmp_path)).check_definitions()


def test_every_definition_has_names_and_types_that_exist(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(KERNEL + "  expr: unheard_of(self)\n")
    with pytest.raises(SchemaError, match="unheard_of"):
        Table(load(tmp_path)).check_definitions()


def test_every_reason_names_a_test_that_exists() -> None:
    for op in load(ROOT / "ops"):
        for reason in filter(None, (op.no_definition, op.test.get("no_samples"))):
            named = re.findall(r"tests/\S+\.(?:py|cc)", reason)
            assert named, f"{op.where}: {reason}"
            for path in named:
                assert (ROOT / path).exists(), f"{op.where}: {path}"


def test_every_public_entry_has_samples_or_a_reason() -> None:
    without = [op.ident for op in load(ROOT / "ops") if op.python and not samples(op)]
    reasons = [op.ident for op in load(ROOT / "ops") if "no_samples" in op.test]
    assert without == reasons
