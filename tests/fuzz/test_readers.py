"""A sample of what ``make fuzz-readers`` does; and that it notices what it is for."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from tests.children import ENVIRONMENT, ROOT, SANITIZED
from tests.fuzz import corpus, mutate

import taeda

BUILD = Path(taeda.__file__).parents[2]
FILES = os.environ.get("TAEDA_FUZZ_FILES", "400" if SANITIZED else "1500")
SEED = os.environ.get("TAEDA_FUZZ_SEED", "0")


def run_python(text: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, *arguments, *(["-c", text] if text else [])]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT)


def test_damaged_files(tmp_path: Path) -> None:
    if not (BUILD / "fuzz_readers").exists():
        pytest.skip("the fuzz programs are not built; `make test` builds them")
    options = ["--files", FILES, "--seed", SEED, "--build", str(BUILD), "--found", str(tmp_path)]
    done = run_python("", "-m", "tests.fuzz.readers", *options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "0 deaths, 0 hangs, 0 wrong" in done.stdout


def test_honest_files_load() -> None:
    for data in corpus.archives() + corpus.legacy():
        taeda.load(io.BytesIO(data))
    from taeda import safetensors

    for data in corpus.safetensors():
        safetensors.load(data)


def test_mutants_are_repeatable_and_many_pass_the_first_check() -> None:
    data = corpus.archives()[0]
    warnings.simplefilter("ignore")  # names that stand twice in an archive
    made = [mutate.mutant(random.Random(i), data) for i in range(200)]
    assert made == [mutate.mutant(random.Random(i), data) for i in range(200)]
    assert sum(zipfile.is_zipfile(io.BytesIO(m)) for m in made) > 100


PLANTED = """
import os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.fuzz import readers
found = Path({folder!r})
session = readers.Session(0, found)
def read(data):
    {fault}
readers.read = read
session.run(3)
print(session.summary())
"""


@pytest.mark.parametrize(
    "fault, said",
    [
        ("os.kill(os.getpid(), 11)", "1 deaths"),
        ("open('x', 'w')", "3 wrong"),
        ("os.system('true')", "3 wrong"),
        ("raise SystemError('x')", "3 wrong"),
        ("raise RuntimeError('no')", "0 deaths, 0 hangs, 0 wrong"),
    ],
)
def test_what_a_reader_must_not_do_is_noticed(fault: str, said: str, tmp_path: Path) -> None:
    text = PLANTED.format(root=str(ROOT), folder=str(tmp_path), fault=fault)
    done = run_python(text)
    assert said in done.stdout, done.stdout + done.stderr
