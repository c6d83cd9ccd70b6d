"""What typical mistakes say: PyTorch's type and words, where it happened, what was expected."""

from pathlib import Path

import pytest

import taeda

from .cases import MISTAKES
from .page import Said, label, page, said, scored

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_says_where_and_what(mistake):
    found = said(taeda, mistake)
    assert found.error == mistake.error
    assert mistake.words in found.message
    listed = (*mistake.where, *mistake.expected, *mistake.given, *mistake.cure)
    assert [part for part in listed if part not in found.text] == [], found.text


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_pytorch_raises_the_same_type_with_these_words(mistake):
    torch = pytest.importorskip("torch")
    theirs = said(torch, mistake)
    assert theirs.error == mistake.error
    assert mistake.words in theirs.message


def test_the_score_needs_words_for_each_aspect():
    mistake = MISTAKES[0]._replace(where=("a",), expected=("b",), given=(), cure=("c",))
    found = Said("RuntimeError", "a b", ["and c"])
    assert scored(found, mistake) == (True, True, False, True)
    assert label("Ours", scored(found, mistake)) == "Ours (3 of 4: no given)"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_has_all_four_points(mistake):
    found = said(taeda, mistake)
    assert scored(found, mistake) == (True, True, True, True), found.text


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_what_to_do_is_a_note_and_leaves_the_text_to_pytorch(mistake):
    found = said(taeda, mistake)
    assert "Fix: " not in found.message
    fixes = [note for note in found.notes if note.startswith("Fix: ")]
    assert len(fixes) <= 1 and found.notes[len(found.notes) - len(fixes) :] == fixes


def test_there_are_forty_mistakes_and_the_page_shows_what_they_say_now():
    assert len(MISTAKES) >= 40
    torch = pytest.importorskip("torch")
    assert PAGE.read_text() == page(taeda, torch)
