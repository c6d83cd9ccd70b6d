"""dir() and hasattr() tell the truth: what is listed can be read, and is PyTorch's."""

import importlib
import pkgutil
import types

import pytest

import taeda
from taeda import _missing

SKIPPED = ("taeda._as_torch", "taeda.__main__", "taeda._missing.", "taeda.utils.cpp_extension")


def submodules():
    """Every module of the package that has a file, and of the tables of missing ones."""
    found = (info.name for info in pkgutil.walk_packages(taeda.__path__, "taeda."))
    names = {"taeda", *(name for name in found if not name.startswith(SKIPPED))}
    return sorted(names | {"taeda" + name.removeprefix("torch") for name in _missing._modules()})


@pytest.mark.parametrize("name", submodules())
def test_what_dir_lists_can_be_read(name):
    module = importlib.import_module(name)
    assert [n for n in dir(module) if not hasattr(module, n)] == []


OWNERS = "", "Tensor", "nn", "nn.functional", "optim", "optim.lr_scheduler", "amp", "linalg", "func"


def public(owner):
    """The names in a module or class that it offers, without those that its file imports and
    without modules, which are there once something has imported them."""
    return {
        name
        for name in dir(owner)
        if not name.startswith("_")
        and name not in ("annotations", "importlib", "Any", "FunctionType", "Tensor")
        and not isinstance(getattr(owner, name), types.ModuleType)
    }


@pytest.mark.parametrize("owner", OWNERS)
def test_public_names_are_pytorchs(owner):
    torch = pytest.importorskip("torch")
    mine, theirs = taeda, torch
    for part in filter(None, owner.split(".")):
        mine, theirs = getattr(mine, part), getattr(theirs, part)
    if isinstance(mine, types.ModuleType):
        assert not hasattr(mine, "no_such_name")
    of_our_own = public(mine) - public(theirs)
    assert of_our_own == set(), "names of one's own begin with _: docs/adding-an-operator.md"
