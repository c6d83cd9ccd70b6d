"""What the wheel holds. Runs where `make wheel` has made one."""

import zipfile
from pathlib import Path

import pytest

DIST = Path(__file__).resolve().parents[2] / "dist"


@pytest.fixture(scope="module", params=sorted(DIST.glob("taeda-*.whl")) or [None], ids=str)
def wheel(request):
    if request.param is None:
        pytest.skip("no wheel in dist/ (make wheel)")
    return request.param


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_size(wheel):
    assert wheel.stat().st_size <= 25e6
    with zipfile.ZipFile(wheel) as archive:
        assert sum(item.file_size for item in archive.infolist()) <= 82e6  # with kernels for CUDA


def test_each_library_once(names):
    libraries = [name for name in names if ".so" in name.rsplit("/", 1)[-1]]
    inside = sorted(name for name in libraries if name.startswith("taeda/lib/"))
    stems = [name.rsplit("/", 1)[-1].split(".so")[0] for name in inside]
    assert stems == ["libdnnl", "libgomp", "libscipy_openblas", "libtaeda"]
    assert [name for name in libraries if name not in inside] == [
        name for name in names if name.startswith("taeda/_C") and ".so" in name
    ]


def test_python_and_cpp_interfaces(names):
    for expected in (
        "taeda/__init__.py",
        "taeda/__main__.py",
        "taeda/_as_torch/functorch/__init__.py",
        "taeda/_as_torch/sitecustomize.py",
        "taeda/_as_torch/torch/__init__.py",
        "taeda/_as_torch/torch-2.13.0+taeda.egg-info/PKG-INFO",
        "taeda/_as_torch/torch-2.13.0+taeda.egg-info/top_level.txt",
        "taeda/nn/__init__.py",
        "taeda/include/taeda/taeda.h",
        "taeda/include/taeda/tensor.h",
        "taeda/include/taeda/ops.h",
        "taeda/lib/cmake/taeda/taedaConfig.cmake",
    ):
        assert expected in names


def test_licences_of_what_is_inside(names):
    for expected in ("oneDNN.txt", "OpenBLAS.txt", "THIRD_PARTY.md"):
        assert f"taeda/licenses/{expected}" in names


def test_metadata_says_who_and_under_which_licence(wheel, names):
    (path,) = [name for name in names if name.endswith(".dist-info/METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(path).decode().split("\n\n")[0].split("\n")
    for expected in (
        "Name: taeda",
        "Author: the taeda authors",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
        "Project-URL: Paper, https://arxiv.org/abs/1912.01703",
    ):
        assert expected in lines
    assert "Classifier: Programming Language :: Python :: 3.14" in lines
