"""Misspelt attributes, and the words of other frameworks, get the name that was meant."""

import pickle
import sys

import pytest

import taeda
from taeda import _near_names, _tensor


def text_of(owner, name):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert type(caught.value).__name__ == "AttributeError"
    return str(caught.value)


@pytest.mark.parametrize(
    ("owner", "wrong", "meant"),
    [
        ("taeda", "zerso", "zeros"),
        ("taeda", "int23", "int32"),
        ("taeda.nn", "Relu", "ReLU"),
        ("taeda.nn", "Dense", "Linear"),
        ("taeda.nn.functional", "Relu", "relu"),
        ("taeda.nn.init", "xavier_unifrom_", "xavier_uniform_"),
        ("taeda.optim", "Adamw", "AdamW"),
        ("taeda.optim.lr_scheduler", "StepLr", "StepLR"),
        ("taeda.linalg", "nrom", "norm"),
        ("taeda.fft", "ftf", "fft"),
        ("taeda.special", "erff", "erf"),
        ("taeda.distributions", "Normall", "Normal"),
    ],
)
def test_modules_name_what_is_near(owner, wrong, meant):
    __import__(owner)
    assert text_of(sys.modules[owner], wrong).endswith(
        f"has no attribute '{wrong}'. Did you mean: '{meant}'?"
    )


def test_a_name_that_is_near_nothing_gets_no_advice():
    assert text_of(taeda, "xyz_abc") == "module 'taeda' has no attribute 'xyz_abc'"
    assert "mean" not in text_of(taeda.nn.Linear(2, 2), "gradient_checkpointing")


@pytest.mark.parametrize("name", _tensor._FOREIGN_NAMES)
def test_tensors_say_what_other_frameworks_names_are_here(name):
    meant = _tensor._FOREIGN_NAMES[name]
    assert hasattr(taeda.Tensor, meant)
    for tensor in (taeda.ones(2), taeda.nn.Parameter(taeda.ones(2))):
        kind = type(tensor).__name__
        advice = f"has no attribute '{name}'. Did you mean: '{meant}'?"
        assert text_of(tensor, name) == f"'{kind}' object {advice}"
        assert text_of(type(tensor), name) == f"type object '{kind}' {advice}"
        assert not hasattr(tensor, name) and name not in dir(tensor) + dir(type(tensor))


def test_such_names_are_free_for_programs():
    class Wrapped(taeda.Tensor):
        def copy(self):
            return "mine"

        def __getattr__(self, name):
            return f"forwarded {name}"

    x = taeda.ones(2).as_subclass(Wrapped)
    assert x.copy() == "mine" and x.astype == "forwarded astype" and "copy" in dir(Wrapped)
    y = taeda.ones(2)
    y.to_numpy = 3
    assert y.to_numpy == 3


def test_the_name_is_looked_for_only_where_the_text_is_read():
    asked = []
    error = _near_names.no_attribute("it", "wieght", lambda: asked.append(1) or ["weight"])
    assert not asked and error.name == "wieght"
    assert str(error) == "it has no attribute 'wieght'. Did you mean: 'weight'?" and asked
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is AttributeError and str(again) == str(error)


def test_messages_name_tensors_as_pytorch_does():
    assert text_of(taeda.ones(2), "shpae").startswith("'Tensor' object has no attribute")
    with pytest.raises(TypeError, match=r"'Tensor' object is not callable"):
        taeda.ones(2)()
    assert taeda.Tensor.__module__ == "taeda" and repr(taeda.Tensor) == "<class 'taeda.Tensor'>"
