"""What typical mistakes say: PyTorch's type and words, where it happened, what was expected."""

from pathlib import Path

import pytest

import taeda

from .cases import MISTAKES
from .page import page, said

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_says_where_and_what(mistake):
    found = said(taeda, mistake)
    assert found.error == mistake.error
    assert mistake.words in found.message
    missing = [part for part in (*mistake.where, *mistake.what) if part not in found.text]
    assert missing == [], found.text


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_pytorch_raises_the_same_type_with_these_words(mistake):
    torch = pytest.importorskip("torch")
    theirs = said(torch, mistake)
    assert theirs.error == mistake.error
    assert mistake.words in theirs.message


def test_there_are_forty_mistakes_and_the_page_shows_what_they_say_now():
    assert len(MISTAKES) >= 40
    torch = pytest.importorskip("torch")
    assert PAGE.read_text() == page(taeda, torch)
