"""The arguments that a docstring lists are those that the function takes."""

import inspect
import re

import pytest

import taeda

CLASSES = [
    value
    for owner in (taeda.optim, taeda.optim.lr_scheduler, taeda.nn)
    for name in dir(owner)
    if isinstance(value := getattr(owner, name), type) and not name.startswith("_")
]


def listed(doc):
    """The names in front of the colons of "Args:"."""
    text = re.search(r"^Args:\n((?:    .*\n?|\n)+)", doc, re.M)
    heads = re.findall(r"^    (\w[\w, ]*):", text[1], re.M) if text else []
    return [name for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("owner", dict.fromkeys(CLASSES), ids=lambda owner: owner.__name__)
def test_a_class_takes_what_its_docstring_lists(owner):
    names = listed(inspect.getdoc(owner) or "")
    taken = inspect.signature(owner).parameters
    if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        pytest.skip("takes anything")
    assert set(names) <= set(taken), sorted(set(names) - set(taken))


def test_the_lists_are_found():
    assert listed(inspect.getdoc(taeda.optim.SGD))[:3] == ["params", "lr", "momentum"]
    assert listed(inspect.getdoc(taeda.nn.Linear))[:2] == ["in_features", "out_features"]
