"""What a new operator makes the generator write again, which is what it makes the compiler do."""

import shutil
from pathlib import Path

from gen.__main__ import generate, main
from gen.text import cut

ROOT = Path(__file__).resolve().parents[2]


def test_an_inserted_item_changes_its_own_piece():
    names = [f"operator_{i}" for i in range(200)]
    before = cut(names, str, 40)
    assert [name for piece in before.values() for name in piece] == names
    assert all(first == piece[0] and len(piece) <= 40 for first, piece in before.items())
    for place in range(0, 201, 7):
        after = cut([*names[:place], "new", *names[place:]], str, 40)
        changed = [first for first in after if before.get(first) != after[first]]
        assert len(changed) <= 3, (place, changed)


def test_heavy_items_fill_a_piece():
    pieces = cut(range(50), str, 10, weight=lambda i: 4)
    assert max(len(piece) for piece in pieces.values()) == 2


def test_a_new_operator_changes_few_files(tmp_path):
    shutil.copytree(ROOT / "ops", tmp_path / "ops")
    before = generate(tmp_path / "ops")
    table = tmp_path / "ops" / "reduce" / "reduce.yaml"
    entries = table.read_text().split("\n- op: ")
    entries.insert(
        len(entries) // 2, "second_moment(Tensor self) -> Tensor\n  expr: mean(self * self)"
    )
    table.write_text("\n- op: ".join(entries))
    after = generate(tmp_path / "ops")
    changed = {name for name in after if before.get(name) != after[name]}
    assert {"op/second_moment.h", "include/taeda/ops.h"} <= changed
    compiled = {name for name in changed if name.endswith(".cc")}
    assert len(compiled) <= 6, sorted(compiled)


def test_a_missing_functor_is_an_error_of_the_table(tmp_path, capsys, monkeypatch):
    (tmp_path / "pointwise.yaml").write_text(
        "\n- op: twice(Tensor self) -> Tensor\n  pointwise: Twice\n  grad: none\n"
    )
    monkeypatch.setattr("sys.argv", ["gen", "--ops", str(tmp_path), "--out", str(tmp_path / "o")])
    assert main() == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ops/pointwise.yaml:2: twice(Tensor self) -> Tensor: no header")
    assert "'Twice'" in error
    assert len(error.splitlines()) == 1
