"""tools/show_op finds an operator by its name in the table and by its names in Python."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def show(name):
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "show_op"), "--files", name],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    "python_name, table_name",
    [
        ("torch.linalg.svd", "linalg_svd"),
        ("nn.functional.mse_loss", "mse_loss"),
        ("Tensor.fill_diagonal_", "fill_diagonal_"),
        ("torch.gelu", "gelu"),
        ("special.expit", "sigmoid"),
    ],
)
def test_found_by_its_names(python_name, table_name):
    found = show(python_name)
    assert found.returncode == 0, found.stderr
    assert found.stdout == show(table_name).stdout and "ops/" in found.stdout


def test_a_name_of_several_operators():
    entries = [line for line in show("trapz").stdout.splitlines() if " ops/" in line]
    assert len(entries) == 2


def test_unknown():
    found = show("nosuch")
    assert found.returncode != 0 and "no operator called nosuch" in found.stderr


@pytest.mark.parametrize(
    "name, how",
    [
        ("dist", "dist on cuda: as the operators it calls"),
        ("softmax", "softmax on cuda: native"),
        ("gelu", "gelu on cuda: native"),
        ("nonzero", "nonzero on cuda: native"),
        ("_linalg_inv", "_linalg_inv on cuda: fallback (no kernel lapack_inverse)"),
        ("transpose", "transpose on cuda: native"),
    ],
)
def test_says_how_a_device_runs_it(name, how):
    shown = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "show_op"), name],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert how in shown.stdout
