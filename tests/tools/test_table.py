"""What the operator table refuses (gen/table.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from gen.autograd import add_dual_operators
from gen.cpp import Table, composite_body
from gen.op import Op
from gen.records import full_name
from gen.schema import SchemaError
from gen.table import load
from tests.ops.samples import samples

ROOT = Path(__file__).resolve().parents[2]


def table() -> list[Op]:
    return load(ROOT / "ops")


@pytest.mark.parametrize("key", ["grad", "gradgrad", "forward_ad", "no_samples"])
def test_a_derivative_is_left_unchecked_for_a_reason_only(key: str) -> None:
    for op in table():
        reason = op.test.get(key, "checked")
        assert isinstance(reason, str) and reason, f"{op.where}: test: {key}"


def test_names_of_an_inplace_form_have_one() -> None:
    assert [op.where for op in table() if op.aten_inplace and "inplace" not in op.variants] == []


def test_conjugates_are_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "- op: f(Tensor self) -> Tensor\n  pointwise: F\n  grad: gy\n  antiholomorphic: [other]\n"
    )
    with pytest.raises(SchemaError, match="other"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "f(Tensor self, bool keep=false) -> Tensor\n  expr: self",
            "default of 'keep' is no literal",
        ),
        ("f(Tensor self) -> Tensor\n  types: real\n  types: all\n  expr: self", "given twice"),
        ("f(Tensor self) -> Tensor\n  python: torch.f\n  expr: self", "can only concatenate"),
        ("f(Tensor self) -> Tensor\n  node: F\n  expr: self\n  grad: a = gy; a", "invalid syntax"),
        (
            "f(Tensor self, Scalar n) -> Tensor\n  node: F\n  expr: self\n  grad: {n: gy}",
            "'n' stands where a tensor's name is expected",
        ),
        (
            "f(Tensor self, Tensor? n=None) -> Tensor\n  expr: self\n  numbers: [n]",
            "numbers stand for tensors that are always given, 'n' may be None",
        ),
        (
            "f(Tensor self) -> Tensor\n  kernel: f\n  grad: none\n  out: {result: [self.sizes()]}",
            "'out' must give sizes and dtype of",
        ),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path: Path, entry: str, message: str) -> None:
    (tmp_path / "one.yaml").write_text(f"# a comment\n- op: {entry}\n")
    with pytest.raises(SchemaError, match=rf"ops/one\.yaml:2: .*{message}"):
        load(tmp_path)


def test_a_mistake_of_yaml_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("- op: f(Tensor self) -> Tensor\n  doc: a: b\n")
    with pytest.raises(yaml.YAMLError, match=r"one\.yaml\", line 2"):
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
    assert (one.autocast, three.autocast) == ("no_rule", "float32")
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


def test_what_is_written_by_hand_has_a_definition_or_says_why_not() -> None:
    wrong = "what is written by hand has either a definition, `expr`, or a reason, `no_definition`"
    leaves = [op for op in table() if op.is_leaf or op.no_definition]
    both_or_none = [op for op in leaves if bool(op.expr) == bool(op.no_definition)]
    assert [f"{op.where} {op.ident}" for op in both_or_none] == [], wrong
    for op in table():
        assert op.is_leaf or op.body == "expr" or not op.expr, (
            f"{op.where}: {op.ident} needs no `expr`"
        )


def called_by_definitions(ops: list[Op]) -> dict[str, set[str]]:
    """The overloads that each definition and composite calls, by identifier.

    Of the definitions beside kernels the build compiles those that autograd replays; here all are
    translated, so that a wrong name or type in any of them is an error.
    """
    table, called = Table(ops), {}
    for op in ops:
        if op.expr:
            table.called.clear()
            composite_body(op, table, op.expr)
            called[op.ident] = {*table.called}
    return called


def leading_back(ops: list[Op]) -> list[str]:
    """The operators whose definition stands on them, through other definitions and composites."""
    called, circular = called_by_definitions(ops), []
    for op in ops:
        found: set[str] = set()
        front = [op.ident] if op.is_leaf else []
        while front:
            new = called.get(front.pop(), set()) - found
            found |= new
            front += new
        circular += [op.ident] if op.ident in found else []
    return circular


def test_no_definition_leads_back_to_its_operator(tmp_path: Path) -> None:
    assert leading_back(add_dual_operators(table())) == []
    circle = KERNEL + "  expr: g(self)\n- op: g(Tensor self) -> Tensor\n  expr: f(self)\n"
    (tmp_path / "one.yaml").write_text(circle)
    assert leading_back(load(tmp_path)) == ["f"]
    (tmp_path / "one.yaml").write_text(circle.replace("expr: f(self)", "expr: self"))
    assert leading_back(load(tmp_path)) == []


def test_every_definition_has_names_and_types_that_exist(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(KERNEL + "  expr: unheard_of(self)\n")
    with pytest.raises(SchemaError, match="unheard_of"):
        called_by_definitions(load(tmp_path))


def test_every_reason_names_a_test_that_exists() -> None:
    for op in table():
        for reason in filter(None, (op.no_definition, op.test.get("no_samples"))):
            named = re.findall(r"tests/\S+\.(?:py|cc)", reason)
            assert named, f"{op.where}: {reason}"
            for path in named:
                assert (ROOT / path).exists(), f"{op.where}: {path}"


def test_every_public_entry_has_samples_or_a_reason() -> None:
    without = [op for op in table() if op.python and not samples(op)]
    silent = [f"{op.where} {op.ident}" for op in without if "no_samples" not in op.test]
    assert silent == [], "an entry with a name in Python has samples, or a reason: `no_samples`"
    reasons = [op for op in table() if "no_samples" in op.test and op not in without]
    assert [op.where for op in reasons] == [], "an entry with samples needs no reason for none"


def test_every_public_entry_has_a_docstring() -> None:
    described = {op.name for op in table() if op.doc}  # by one of its overloads
    without = [f"{op.where} {op.ident}" for op in table() if op.python and op.name not in described]
    assert without == [], "an entry with a name in Python has `doc`"


def test_entries_of_pytorchs_namespace_are_pytorchs() -> None:
    """One of our own says `aten: none`; else it is registered as torch.ops.aten.NAME."""
    torch = pytest.importorskip("torch")
    strange = []
    for op in table():
        name, overload = full_name(op)
        space, _, stem = name.partition("::")
        for form in (overload or "default", *list(op.aten or {})[1:]) if space == "aten" else ():
            packet = getattr(torch.ops.aten, stem, None)
            if packet is None or form not in packet.overloads():
                strange.append(f"{op.where} {stem}.{form}")
    assert strange == [], "an operator that PyTorch has not says `aten: none`"
