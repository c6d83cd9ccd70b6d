"""torch.return_types: results whose parts have names."""

import copy
import pickle
import subprocess
import sys

import pytest

import taeda as torch


def test_known_before_an_operator_makes_one():
    code = (
        "import sys, taeda as torch\n"
        "assert 'taeda.return_types' not in sys.modules\n"
        "kind = torch.return_types.max\n"
        "assert isinstance(torch.ones(2, 2).max(0), kind)\n"
        "assert type(torch.max(torch.ones(2, 2), 0)) is kind\n"
        "assert not isinstance(torch.ones(2, 2).min(0), kind)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_made_by_hand():
    made = torch.return_types.max((1, 2))
    assert (made.values, made.indices) == (1, 2) and made[1] == 2
    with pytest.raises(TypeError):
        torch.return_types.max((1, 2, 3))
    with pytest.raises(AttributeError):
        torch.return_types.nothing  # noqa: B018


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    best = torch.tensor([[1.0, 3.0]]).max(1)
    again = pickle.loads(pickle.dumps(best, protocol))
    assert type(again) is type(best)
    assert again.values.tolist() == [3.0] and again.indices.tolist() == [1]


def test_copies():
    best = torch.tensor([[1.0, 3.0]]).sort()
    for copied in (copy.copy(best), copy.deepcopy(best)):
        assert type(copied) is torch.return_types.sort
        assert copied.indices.tolist() == [[0, 1]]


def test_like_pytorch():
    oracle = pytest.importorskip("torch")
    for kind in torch.return_types.all_return_types:
        if kind.__name__ == "unique_dim":  # whose results have no names there
            continue
        theirs = getattr(oracle.return_types, kind.__name__)
        assert kind.__match_args__ == theirs.__match_args__


@pytest.mark.parametrize("kind", [tuple, list])
def test_outputs_that_were_given_have_names(kind):
    given = kind([torch.empty(0), torch.empty(0, dtype=torch.int64)])
    result = torch.max(torch.tensor([[1.0, 3.0], [4.0, 2.0]]), 1, out=given)
    assert result.values is given[0] and result.indices is given[1]
    assert result.values.tolist() == [3, 4] and result.indices.tolist() == [1, 0]
