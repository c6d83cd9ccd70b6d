"""Programs of repositories: printed numbers compared, rows kept, small data that reads back."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import compare_repositories as repositories

PRINTS = "for i in range(9):\n    print(f'{i} took {i * 3.7}s, loss {1 / (i + 1):.3f}')\n"


@pytest.fixture
def program() -> repositories.Program:
    return repositories.Program(
        "one", "a/b", "v1", "counts", run=["count.py"], ignore=[r"took [\d.]+s"], lines=4
    )


def test_numbers_may_differ_in_their_last_printed_place() -> None:
    assert repositories.apart("0.123", "0.124") == 0
    assert repositories.apart("1.5e-05", "1.6e-05") == 0
    assert repositories.apart("0.1230", "0.1250") == pytest.approx(0.0019 / 0.125, rel=0.01)
    assert repositories.apart("nan", "nan") == 0
    assert repositories.apart("output", "other") == math.inf


def test_numbers_agree_up_to_the_first_that_is_apart() -> None:
    assert repositories.first_apart(["1", "2.0001", "4.0"], ["1", "2.0002", "4.5"]) == (2, 0)
    assert repositories.first_apart(["1", "2"], ["1", "2", "3"])[0] == 2


def test_a_program_ends_after_enough_lines(program: repositories.Program, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(PRINTS + "import time\ntime.sleep(60)\n")
    output, error = program.read([sys.executable, "-u", "count.py"], tmp_path, {})
    assert not error and program.numbers(output)[:4] == ["0", "1.000", "1", "0.500"]
    assert len(output.splitlines()) == 4


def test_the_error_of_a_program_is_its_last_line(
    program: repositories.Program, tmp_path: Path
) -> None:
    (tmp_path / "count.py").write_text("print(1)\nraise KeyError('absent')\n")
    output, error = program.read([sys.executable, "count.py"], tmp_path, {})
    assert output == "1\n" and error == "KeyError: 'absent'"


def test_rows_of_programs_that_were_not_run_stay(program: repositories.Program) -> None:
    other = repositories.Program("two", "c/d", "v2", "sums", run=["sum.py"])
    listed = [program, other]
    first = {"one": repositories.row(program, "8", "the same")}
    page = repositories.report("# Head\n\ntext\n", first, listed)
    second = {"two": repositories.row(other, "3", "the first 1")}
    page = repositories.report(page, second, listed)
    words = page.replace("\n", " ")
    assert words.startswith("# Head  In all, 1 of 2 programs that ran (50.0 %) agree")
    assert "say why.  text " in words and "1 of 2 print" in words
    assert "| a/b: counts | v1 | `count.py` | 8 | the same |" in page


PARTS = "import torch\nweight = torch.nn.Parameter(torch.ones(8))\ntorch.optim.SGD([weight])\n"
PARTS += "print(*(f'{w:.9f}' for w in weight.tolist()))\n"


def test_weights_change_by_one_unit_of_their_last_place(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "parts.py").write_text(PARTS)
    changed = {}
    for setting in "", "1", "all":
        one = repositories.Program("one", "a/b", "v1", "weights", run=["parts.py"])
        command = [sys.executable, str(repositories.HERE / "seeded.py"), "parts.py"]
        output, error = one.read(command, tmp_path, {"PERTURBED": setting})
        assert not error
        changed[setting] = [float(word) - 1 for word in output.split()]
    up, down = 2**-23, -(2**-24)
    assert changed[""] == [0] * 8
    assert changed["1"] == pytest.approx([2 * up] + [0] * 7, abs=1e-9)
    signs = {round(change * 2**24) for change in changed["all"]}
    assert signs == {2, -1}
    assert changed["all"] == pytest.approx(
        [up if c > 0 else down for c in changed["all"]], abs=1e-9
    )


@pytest.mark.parametrize(
    ("one", "each", "row"),
    [("1 2 3 9", "", "one weight changed in its last place the first 3"),
     ("1 2 3 4", "1 9 3 4", "each weight changed in its last place the first 1")],
)  # fmt: skip
def test_each_weight_is_changed_where_one_says_little(
    program: repositories.Program, tmp_path: Path, monkeypatch, one: str, each: str, row: str
) -> None:
    printed = {"1": one, "all": each}
    monkeypatch.setattr(
        repositories.Program, "outcome", lambda self, framework, command, sources, setting: (
            printed[setting], ""
        )
    )  # fmt: skip
    numbers, agree = ["1", "2", "3", "4"], 2 if not each else 1
    text = repositories.perturbed(program, "", numbers, agree, tmp_path / "log")
    assert text == f"PyTorch with {row}"
    other = repositories.row(program, "4", f"the first {agree}; {text}: a reason")
    page = repositories.report("# Head\n", {"one": other}, [program])
    assert "0 of 1 print PyTorch's numbers" in page and "digit; 1 part" in page


def test_small_data_are_the_same_bytes_again(tmp_path: Path) -> None:
    for folder in "one", "two":
        command = [sys.executable, str(repositories.HERE / "small_data.py")]
        subprocess.run([*command, "mnist", str(tmp_path / folder), "20", "10"], check=True)
    files = sorted((tmp_path / "one").rglob("*-ubyte"))
    assert [file.stat().st_size for file in files] == [16 + 7840, 8 + 10, 16 + 15680, 8 + 20]
    for file in files:
        assert (
            file.read_bytes()
            == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes()
        )


def test_every_program_is_listed_with_what_it_is_and_how_it_runs() -> None:
    listed = repositories.programs()
    assert len({one.repository for one in listed if one.run}) >= 20
    for one in listed:
        assert one.what and (one.run or one.reason), one.name
