"""The API reference: every public name has a description."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make_docs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import make_docs

    yield make_docs
    for name in ("make_docs", "coverage", "table"):
        sys.modules.pop(name, None)


def test_every_entry_is_described(make_docs):
    missing = [
        f"{path}.{name}"
        for path in make_docs.MODULES
        for name, value in make_docs.members(make_docs.resolve(path))
        if not make_docs.described(value)
    ]
    assert missing == []


def test_a_signature_alone_is_no_description(make_docs):
    def bare(x):
        pass

    class Bare:
        pass

    for value in (bare, Bare):
        assert not make_docs.described(value)
    bare.__doc__ = "bare(x: Tensor) -> Tensor\nbare(x: Tensor, y: Tensor) -> Tensor"
    assert not make_docs.described(bare)
    bare.__doc__ += "\n\nWhat it does."
    assert make_docs.described(bare)
