"""`tests/gpu/run.py`: what it does on a card is known to work on the simulated driver, where no
time is measured; without either everything is skipped."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.gpu import part, rows, run, sanitizers

ROOT = Path(__file__).resolve().parents[2]


def environment(**more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("TAEDA_")}
    return {**env, "TAEDA_CUDA": "sim", **more}


def run_it(tmp_path, *options, **env):
    report = tmp_path / "out.json"
    command = [sys.executable, ROOT / "tests" / "gpu" / "run.py", "--json", report, *options]
    done = subprocess.run(command, env=environment(**env), capture_output=True, text=True)
    return done, json.loads(report.read_text())


def run_part(tmp_path, name, *options, **env):
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "tests.gpu.part", name, "--out", out, "--simulated", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment(**env), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in out.read_text().splitlines()][:-1]


def test_without_a_card_each_parts_cases_are_skipped_and_counted(tmp_path):
    done, written = run_it(tmp_path, TAEDA_CUDA="none")
    assert done.returncode == 0, done.stderr
    skipped = {part: counted["skipped"] for part, counted in written["parts"].items()}
    total = sum(skipped.values())
    why = "no card, or no driver for it"
    assert done.stdout.endswith(f"0 passed, 0 failed, {total} skipped: {why}\n")
    assert f"graphs: {skipped['graphs']} skipped\n" in done.stdout
    assert written["skipped"] == why and len(written["rows"]) == total
    assert {row["outcome"] for row in written["rows"]} == {"skipped"}
    assert [*skipped] == part.NAMES
    few = {
        "first_call": 2,
        "bars": 23,
        "traces": 3,
        "graphs": 2,
        "figures": 1,
        "randoms": 21,
        "sanitizers": 2,
    }
    assert {name: skipped[name] for name in few} == few
    assert skipped["parity"] > 1100 and skipped["cases"] > 500


def test_what_is_counted_without_a_card_is_what_runs_with_one(tmp_path):
    """Of the parts that are quick on the simulated driver."""
    for name in ("first_call", "traces", "graphs", "figures", "bars"):
        module = importlib.import_module(f"tests.gpu.{name}")
        expected = [n.replace("64 M", "0 M") for n in module.names(rows.Settings())]
        assert [r["name"] for r in run_part(tmp_path, name)] == expected


def test_all_of_it_runs_on_the_simulated_driver(tmp_path):
    done, written = run_it(tmp_path, "--report", tmp_path / "pages", "--seconds", "3600")
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = {}
    for row in written["rows"]:
        outcomes.setdefault(row["part"], []).append(row["outcome"])
    assert outcomes["bars"] and set(outcomes["bars"]) == {"not measured"}
    assert outcomes["first_call"] == ["not measured", "skipped"]
    assert outcomes["traces"] == ["passed"] * 3
    assert outcomes["graphs"] == ["passed", "not measured"]
    assert outcomes["figures"] == ["passed"]
    assert outcomes["randoms"][0] == "passed" and "failed" not in outcomes["randoms"]
    assert outcomes["parity"].count("passed") > 1100
    assert "passed" in outcomes["cases"] and "failed" not in outcomes["cases"]
    assert outcomes["sanitizers"] == ["skipped"] * 2
    values = [r["detail"] for r in written["rows"] if r["name"].endswith("as on the CPU")]
    assert values.count("0 calls") < 20 < len(values)
    (page,) = (tmp_path / "pages").glob("*.md")
    text = page.read_text()
    assert page.name == f"{written['date']}-simulated-cuda-device.md"
    assert "Nothing here ran on a card" in text and "| parity |" in text
    pictures = re.findall(r"!\[[^]]*\]\((\S+)\)", text)
    assert len(pictures) == 2 and all((tmp_path / "pages" / p).exists() for p in pictures)
    assert "| a launch from Python | - | <= 5 us | not measured |" in text
    assert all(row.get("value") is None for row in written["rows"])


def test_operators_are_compared_with_pytorch(tmp_path):
    """Its CPU stands in for a card."""
    pytest.importorskip("torch")
    only = "^(add|softmax|sort|cumsum)$"
    found = run_part(tmp_path, "parity", "--only", only, TAEDA_GPU_RIVAL="cpu")
    compared = [r for r in found if r["name"].endswith("as PyTorch")]
    assert {r["outcome"] for r in found} == {"passed"}
    assert len(compared) == 4 and all(int(r["detail"].split()[0]) > 0 for r in compared)


def test_another_result_than_the_cpus_is_a_failure(tmp_path, monkeypatch):
    from tests.gpu import parity

    import taeda

    op = next(op for op in parity.operators("^add$"))
    call = next(parity.calls(op, rows.Settings(simulated=True)))
    results = {"cpu": taeda.tensor([1.0, 2.0]), "cuda": taeda.tensor([1.0, 2.001])}
    row = rows.checked("add", lambda: parity.compare(call, lambda _, d: results[d], taeda, "cpu"))
    assert row.outcome == "failed" and "Mismatched elements: 1 / 2" in row.detail

    def raises(_, device):
        if device == "cpu":
            raise RuntimeError("a division by zero")
        return taeda.ones(1)

    row = rows.checked("add", lambda: parity.compare(call, raises, taeda, "cpu"))
    assert row.outcome == "failed" and "the CPU's is a division by zero" in row.detail


def test_bars_are_met_or_not():
    card, simulated = rows.Settings(), rows.Settings(simulated=True)
    assert rows.bar(card, "launch", 5.1, "us", at_most=5).outcome == "failed"
    assert rows.bar(card, "launch", 4.9, "us", at_most=5).outcome == "passed"
    assert rows.bar(card, "add", 849, "GB/s", at_least=850).outcome == "failed"
    assert rows.bar(card, "add", 851, "GB/s", at_least=850).bar == ">= 850 GB/s"
    assert rows.bar(card, "copy", 1000, "GB/s").outcome == "not measured"
    row = rows.bar(simulated, "launch", 5.1, "us", at_most=5)
    assert (row.outcome, row.value) == ("not measured", None)


def test_what_there_is_no_time_for_is_counted():
    left = rows.Settings(until=time.monotonic() - 1)
    (row,) = rows.within_time(left, range(7), "operators")
    assert (row.outcome, row.detail) == ("skipped", "time was up: 7 of 7 left")
    found, _ = run.run_part("parity", 0, True)
    assert found == [{"name": "parity", "outcome": "skipped", "detail": "time was up"}]


def test_a_part_that_dies_is_a_failure_beside_what_it_found_before(monkeypatch):
    program = (
        "import os, sys; f = open(sys.argv[sys.argv.index('--out') + 1], 'w');"
        'print(\'{"name": "add", "outcome": "passed"}\', file=f, flush=True); os._exit(3)'
    )
    real = subprocess.run

    def dies(command, **how):
        return real([sys.executable, "-c", program, *command[3:]], **how)

    monkeypatch.setattr(run.subprocess, "run", dies)
    found, _ = run.run_part("parity", 60, True)
    assert [r["outcome"] for r in found] == ["passed", "failed"]
    assert "ended with status 3" in found[1]["detail"]


SANITIZER = """#!/bin/sh
echo "$@" > {folder}/arguments
while [ "${{1#--}}" != "$1" ]; do shift; [ "$1" = memcheck ] && shift; done
case {what} in
  clean) exec "$@" ;;
  fault) echo "Invalid __global__ write of size 4 bytes"; exit 86 ;;
esac
"""


@pytest.mark.parametrize("what", ["clean", "fault"])
def test_the_sanitizer_of_cuda_runs_a_subset(tmp_path, monkeypatch, what):
    """A stand-in for it, which runs the program or finds something."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(SANITIZER.format(folder=tmp_path, what=what))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TAEDA_CUDA", "sim")
    assert sanitizers.program() == str(program)
    row = sanitizers.run("memcheck", "add sort", rows.Settings(), str(program))
    assert "--tool memcheck --error-exitcode=86" in (tmp_path / "arguments").read_text()
    if what == "clean":
        assert (row.outcome, row.detail) == ("passed", "2 operators")
    else:
        assert row.outcome == "failed"
        assert row.detail.startswith("found something: Invalid __global__ write")


def test_subsets_of_the_sanitizer_name_operators():
    from tests.gpu import parity

    known = {op.ident for op in parity.operators("")}
    for operators in sanitizers.SUBSETS.values():
        assert set(operators.split()) <= known


def test_the_page_of_cards_says_what_was_not_measured():
    """Each part of the run has a line; none says more while there is no report."""
    folder = ROOT / "docs" / "gpu"
    page = (folder / "README.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert {line[0].strip("| `") for line in lines} == set(part.NAMES)
    reports = [p.name for p in folder.glob("*.md") if p.name != "README.md"]
    assert all(name in page for name in reports)
    if not reports:
        assert "No card has run taeda yet" in page
        assert all(line[2].startswith("not ") for line in lines)
