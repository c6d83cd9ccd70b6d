"""What mypy and pyright say of programs that use taeda, and of programs with mistakes.

pyright is the one that TAEDA_PYRIGHT names or basedpyright, whose package brings all that it needs,
by pyright's standard rules; mypy is the one of `make lint`.
"""

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
import venv
from pathlib import Path

import pytest

import taeda as torch

PROGRAMS = sorted(Path(__file__).with_name("typing").glob("*.py"))
CORRECT = [path for path in PROGRAMS if path.name != "mistakes.py"]
MISTAKES = Path(__file__).with_name("typing") / "mistakes.py"
_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
PYRIGHT = os.environ.get("TAEDA_PYRIGHT") or shutil.which("basedpyright", path=_PATH)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment whose packages are the ones of this build; its Python and a folder."""
    folder = tmp_path_factory.mktemp("typing")
    venv.create(folder / "env", symlinks=True, with_pip=False)
    packages = next((folder / "env").glob("lib/python*/site-packages"))
    (packages / "taeda.pth").write_text(str(Path(torch.__file__).parent.parent))
    return folder / "env" / "bin" / "python", folder


def mypy(environment, *files):
    """The lines that mypy --strict prints; Any from Tensor.item() may be returned as a number."""
    pytest.importorskip("mypy")
    python, folder = environment
    options = ["--strict", "--no-warn-return-any", "--no-error-summary", "--show-column-numbers"]
    cache = ["--cache-dir", str(folder / "cache"), "--python-executable", str(python)]
    command = [sys.executable, "-m", "mypy", *options, *cache, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def pyright(environment, *files):
    """The errors and warnings that pyright prints."""
    if PYRIGHT is None:
        pytest.skip("pyright is not installed")
    python, folder = environment
    settings = {"typeCheckingMode": "standard", "include": [*map(str, files)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [PYRIGHT, "--pythonpath", str(python), "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if re.search(r" - (error|warning)", line)]


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright], ids=["mypy", "pyright"])


@CHECKERS
def test_checkers_find_nothing_in_correct_programs(check, environment):
    assert check(environment, *CORRECT) == []


def test_the_stubs_themselves_are_clean(environment):
    """Names that a stub imports and another does not export would be Any to those who use them."""
    pytest.importorskip("mypy")
    package = Path(torch.__file__).parent
    options = ["--config-file", os.devnull, "--no-site-packages", "--follow-imports", "silent"]
    options += ["--ignore-missing-imports", "--no-error-summary", "--explicit-package-bases"]
    cache = ["--cache-dir", str(environment[1] / "stubs")]
    command = [sys.executable, "-m", "mypy", *options, *cache, *map(str, package.rglob("*.pyi"))]
    env = os.environ | {"MYPYPATH": str(package.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, []), done.stderr


@CHECKERS
def test_checkers_find_every_mistake_and_nothing_else(check, environment):
    lines = MISTAKES.read_text().splitlines()
    marked = {i for i, line in enumerate(lines, 1) if line.endswith("# mistake")}
    assert len(marked) >= 20
    found = {
        int(n) for n in re.findall(r"mistakes\.py:(\d+):", "\n".join(check(environment, MISTAKES)))
    }
    assert found == marked


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_the_correct_programs_run(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout and not done.stderr, done.stderr


@CHECKERS
def test_the_same_programs_import_torch_where_the_shim_is(check, environment, tmp_path):
    from taeda import _shim

    packages = next((environment[1] / "env").glob("lib/python*/site-packages"))
    for name, text in _shim._files().items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(text)
    for path in PROGRAMS:
        text = path.read_text().replace("import taeda as torch", "import torch")
        (tmp_path / path.name).write_text(text.replace("taeda", "torch"))
    assert check(environment, *(tmp_path / path.name for path in CORRECT)) == []
    assert len(check(environment, tmp_path / MISTAKES.name)) >= 20


def public_names(oracle):
    """module.name for what PyTorch has, too, and what does more than raise."""
    from taeda import _missing

    not_ours = ("abc", "enum", "typing", "collections", "__future__")
    for module in [torch, *pkgutil.walk_packages(torch.__path__, "taeda.")]:
        name = "taeda" if module is torch else module.name
        if any(part.startswith("_") for part in name.split(".")):
            continue
        found, theirs = importlib.import_module(name), oracle
        for part in name.split(".")[1:]:
            theirs = getattr(theirs, part, None)
        # Checkers take taeda.jit.annotations for the one that `from __future__` imports.
        if not isinstance(theirs, types.ModuleType) or name == "taeda.jit.annotations":
            continue
        for attribute in getattr(theirs, "__all__", None) or vars(theirs):
            value = getattr(found, attribute, None)
            source = str(getattr(value, "__module__", "taeda") or "taeda").partition(".")[0]
            ours = not attribute.startswith("_") and source not in not_ours
            ours &= value is not torch.Tensor or name == "taeda"
            if not isinstance(value, types.ModuleType | type(None)) and ours:
                if attribute not in _missing.names(name) and not hasattr(value, "_only_raises"):
                    yield name, attribute


@CHECKERS
def test_checkers_know_every_public_name(check, environment, tmp_path):
    oracle = pytest.importorskip("torch")
    names = sorted(set(public_names(oracle)))
    assert len(names) > 2000
    lines = [f"import {module}" for module in dict.fromkeys(module for module, _ in names)]
    lines += [f"print({module}.{name})" for module, name in names]
    (tmp_path / "names.py").write_text("\n".join(lines) + "\n")
    said = check(environment, tmp_path / "names.py")
    assert [line for line in said if "error" in line] == []


def test_the_stub_of_tensor_has_all_its_members():
    import ast

    stub = ast.parse(Path(torch.__file__).with_name("_C.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    declared = set(dir(object))
    for owner in ("Tensor", "_TensorMembers"):
        for entry in classes[owner].body:
            target = getattr(entry, "target", None)
            declared.add(getattr(entry, "name", None) or getattr(target, "id", None))
    removed = {"eig", "lstsq", "solve", "symeig"}  # they raise and name what took their place
    public = {
        name
        for name in dir(torch.Tensor)
        if not name.startswith("_") and not hasattr(getattr(torch.Tensor, name), "_only_raises")
    }
    assert public - declared - removed == set()
    assert {name for name in declared if name and not hasattr(torch.Tensor, name)} == set()
