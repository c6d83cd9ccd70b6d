"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import inspect
import pkgutil
import re
from collections import OrderedDict

import pytest

import taeda


def modules():
    """All public modules, and the class whose methods are a page of their own."""
    names = [m.name for m in pkgutil.walk_packages(taeda.__path__, "taeda.", lambda _: None)]
    public = [n for n in names if not any(part.startswith("_") for part in n.split("."))]
    return ["taeda", "taeda.Tensor", *public]


NAMES = {"torch": taeda, "taeda": taeda, "nn": taeda.nn, "OrderedDict": OrderedDict}


def resolve(path):
    found = taeda
    for part in path.split(".")[1:]:
        if not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def documented(owner):
    """Names and docstrings of an owner's public members, and of the methods of its classes."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        value = getattr(owner, name, None)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if not str(home or "taeda").startswith(("taeda", "builtins")):
            continue
        yield name, value.__doc__ if isinstance(value, type) else inspect.getdoc(value)
        if isinstance(value, type) and str(value.__module__).startswith("taeda"):
            for method, function in vars(value).items():
                yield f"{name}.{method}", inspect.getdoc(function)


def collect():
    seen = set()
    for path in modules():
        try:
            owner = resolve(path)
        except ImportError:
            continue
        for name, doc in documented(owner):
            if isinstance(doc, str) and ">>>" in doc and doc not in seen:
                seen.add(doc)
                yield pytest.param(doc, id=f"{path}.{name}")


@pytest.mark.parametrize("doc", list(collect()))
def test_example(doc):
    taeda.manual_seed(0)
    doc = re.sub(
        r"\b(from|import) torch\b", r"\1 taeda", doc
    )  # what a program has that runs on taeda
    test = doctest.DocTestParser().get_doctest(doc, NAMES, "doc", None, 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    output = []
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=output.append)
    assert result.failed == 0, "".join(output)
    assert result.attempted > 0 or "doctest: +SKIP" in doc  # what needs a device
