"""The API reference: every public name has a description, classes one of each argument."""

import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


sys.path.insert(0, str(ROOT / "tools"))

from site_pages import names  # noqa: E402


def test_every_entry_is_described():
    missing = [
        f"{path}.{name}"
        for path in names.MODULES
        for name, value in names.members(names.resolve(path))
        if not names.described(value)
    ]
    assert missing == []


def test_a_signature_alone_is_no_description():
    def bare(x):
        pass

    class Bare:
        pass

    for value in (bare, Bare):
        assert not names.described(value)
    bare.__doc__ = "bare(x: Tensor) -> Tensor\nbare(x: Tensor, y: Tensor) -> Tensor"
    assert not names.described(bare)
    bare.__doc__ += "\n\nWhat it does."
    assert names.described(bare)


OTHERS = ("DataLoader", "functional_datapipe", "MapDataPipe", "IterDataPipe")


def classes():
    for path in ("taeda.nn", "taeda.optim", "taeda.optim.lr_scheduler", "taeda.utils.data"):
        for name, value in names.members(names.resolve(path)):
            written = isinstance(value, type) and value.__module__.startswith(path)
            if written and name not in OTHERS:
                yield pytest.param(value, id=f"{path}.{name}")


def parameters(cls):
    """The names that a constructor takes, but for private ones and those of a base's."""
    found = inspect.signature(cls).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in found if p.kind not in kinds and not p.name.startswith("_")}


@pytest.mark.parametrize("cls", classes())
def test_classes_describe_their_arguments_and_have_an_example(cls):
    doc = inspect.getdoc(cls)
    section = re.search(r"^Args:\n((?:    .*\n?)*)", doc, re.M)
    described = set(re.findall(r"\w+", section[1])) if section else set()
    assert parameters(cls) - described == set()
    assert ">>> " in doc or "deprecated" in doc
