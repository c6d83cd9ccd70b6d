"""TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, as PyTorch takes them."""

import io
import pickle
import warnings

import pytest

import taeda

ONLY, NOT_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def outcome(torch, **options):
    """'loaded', or the error, of a file that names a function; and whether it warns."""
    file = io.BytesIO()
    taeda.save({"function": pickle.dumps}, file)
    file.seek(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.load(file, **options)
        except (pickle.UnpicklingError, RuntimeError) as error:
            return type(error), bool(caught)
    return "loaded", bool(caught)


@pytest.mark.parametrize("weights_only", [None, True, False])
@pytest.mark.parametrize(
    "set_to",
    [{}, {ONLY: "1"}, {NOT_ONLY: "yes"}, {ONLY: "Y", NOT_ONLY: "TRUE"}, {ONLY: "0"}],
    ids=str,
)
def test_environment_overrides(monkeypatch, set_to, weights_only):
    torch = pytest.importorskip("torch")
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    options = {} if weights_only is None else {"weights_only": weights_only}
    assert outcome(taeda, **options) == outcome(torch, **options)


def test_without_pytorch(monkeypatch):
    assert outcome(taeda) == (pickle.UnpicklingError, False)
    monkeypatch.setenv(NOT_ONLY, "1")
    assert outcome(taeda) == ("loaded", True)
    monkeypatch.setenv(ONLY, "1")
    assert outcome(taeda)[0] is RuntimeError
