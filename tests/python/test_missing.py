"""Names that PyTorch has and taeda lacks import and read; calling them says what is missing."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import ENVIRONMENT

import taeda
from taeda import _missing
from taeda._missing import aliases


@pytest.fixture
def entry(monkeypatch):
    """torch.absent, a package of the tables for one test."""
    from taeda._missing import distributed

    words = (
        "f Cls AnError class:lower def:Upper @mark no:ask "
        "Cls.make Kind{A,B} SIZE=3 TEXT='a' nn=torch.nn "
        "Linear=torch.nn.Linear"
    )
    modules = {
        "torch.absent": ("there is none; use len", words),
        "torch.absent.inside.deep": ("", "g"),
    }
    monkeypatch.setattr(distributed, "MODULES", distributed.MODULES | modules)
    caches = (_missing._modules, _missing._words, _missing._submodules)
    for cache in caches:
        cache.cache_clear()
    yield importlib.import_module("taeda.absent")
    for cache in caches:
        cache.cache_clear()
    for name in [name for name in sys.modules if name.startswith("taeda.absent")]:
        del sys.modules[name]
    vars(taeda).pop("absent", None)


def raises(name):
    return pytest.raises(
        NotImplementedError, match=rf"^torch\.absent\.{name}: there is none; use len"
    )


def test_functions_and_classes_raise_when_called(entry):
    for name in ("f", "Cls", "lower", "Upper"):
        found = getattr(entry, name)
        assert found is getattr(entry, name), "one object for a name"
        assert isinstance(found, type) == (name in ("Cls", "lower"))
        with raises(name):
            found(1, key=2)
    with raises(r"Cls\.make"):
        entry.Cls.make()


def test_classes_can_be_named_and_derived_from(entry):
    class Derived(taeda.nn.Module, entry.Cls, option=1):
        pass

    assert entry.Cls[int] is entry.Cls
    assert not isinstance(3, entry.Cls) and issubclass(Derived, entry.Cls)
    assert (entry.Cls | None) is not None
    with raises("Cls"):
        Derived()


def test_decorators_raise_when_what_they_decorate_is_called(entry):
    def plain():
        """Doc."""

    for decorated in (entry.mark(plain), entry.mark()(plain), entry.mark(3, key=1)(plain)):
        assert decorated.__name__ == "plain" and decorated.__doc__ == "Doc."
        with raises("mark"):
            decorated()


def test_questions_are_answered(entry):
    assert entry.ask() is entry.ask("x", key=1) is False and entry.ask.__name__ == "ask"
    assert not hasattr(entry.ask, "_only_raises")


def test_exceptions_can_be_caught(entry):
    assert issubclass(entry.AnError, RuntimeError) and entry.AnError._only_raises
    with pytest.raises(ValueError):
        try:
            raise ValueError
        except entry.AnError:
            pass


def test_values(entry):
    assert [kind.name for kind in entry.Kind] == ["A", "B"]
    assert entry.SIZE == 3 and entry.TEXT == "a"
    assert entry.nn is taeda.nn and entry.Linear is taeda.nn.Linear


def test_modules(entry):
    assert taeda.absent is entry and "absent" in dir(taeda)
    assert {"f", "Cls", "mark", "SIZE", "inside"} <= set(dir(entry))
    names = {}
    exec("from taeda.absent import *", names)
    assert {"f", "Cls", "lower", "Upper", "mark"} <= set(names)
    assert entry.inside.deep.g is importlib.import_module("taeda.absent.inside.deep").g
    with pytest.raises(AttributeError, match=r"'taeda\.absent' has no attribute 'zz'"):
        entry.zz  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("taeda.absent.zz")
    for kind in ("f", "Cls", "mark", "Kind"):
        assert getattr(entry, kind)._only_raises


def test_every_name_of_the_tables_can_be_read():
    for module in _missing._modules():
        found = importlib.import_module("taeda" + module.removeprefix("torch"))
        for name in _missing._words(module):
            getattr(found, name)


def test_an_enumerations_own_type():
    assert taeda.distributed.ReduceOp.RedOpType.SUM is taeda.distributed.ReduceOp.SUM


@pytest.mark.parametrize("module", sorted(aliases.MODULES))
def test_modules_that_are_others_names(module):
    theirs = pytest.importorskip(module)
    ours = importlib.import_module("taeda" + module.removeprefix("torch"))
    assert not getattr(ours, "_only_raises", False)
    for name in getattr(theirs, "__all__", ours.__all__):
        found = getattr(ours, name)
        assert callable(found) and not getattr(found, "_only_raises", False)


def test_an_enumerations_members_are_constants_of_the_module():
    monitor = taeda.monitor
    assert monitor.MEAN is monitor.Aggregation.MEAN and monitor.MIN is monitor.Aggregation.MIN


@pytest.mark.parametrize(
    "name",
    [
        "distributed.get_debug_level",
        "nn.quantized.LSTM",
        "nn.quantized.functional.conv2d",
        "utils.bundled_inputs.bundle_inputs",
        "_inductor.standalone_compile",
        "_dynamo.skip_frame",
        "export.graph_signature.SymIntArgument",
        "nn.parallel.DistributedDataParallel",
    ],
)
def test_what_is_missing_says_what_to_do_instead(name):
    module, _, own_name = name.rpartition(".")
    found = getattr(importlib.import_module(f"taeda.{module}"), own_name)
    with pytest.raises(NotImplementedError, match=rf"{own_name}: taeda .*;"):
        found(taeda.nn.Linear(1, 1))


def test_what_functional_imports_in_pytorch_can_be_imported_from_it():
    F = taeda.nn.functional
    assert F.has_torch_function is taeda.overrides.has_torch_function
    assert F.boolean_dispatch is taeda._jit_internal.boolean_dispatch
    assert F.has_torch_function_unary(taeda.ones(1)) is False


def test_cmake_prefix_path_leads_to_the_packages_configuration():
    assert (Path(taeda.utils.cmake_prefix_path) / "taedaConfig.cmake").exists()
    assert "cmake_prefix_path" in dir(taeda.utils)


def test_functional_holds_what_pytorchs_does():
    theirs = pytest.importorskip("torch").functional
    assert [name for name in theirs.__all__ if not hasattr(taeda.functional, name)] == []
    assert taeda.functional.cdist is taeda.cdist


@pytest.mark.parametrize("name", ["bits8", "bits16", "int1", "uint7", "float4_e2m1fn_x2", "qint32"])
def test_dtypes_without_tensors_say_what_they_are(name):
    torch = pytest.importorskip("torch")

    def described(dtype):
        try:
            signed = dtype.is_signed
        except RuntimeError:
            signed = RuntimeError
        return dtype.itemsize, dtype.is_floating_point, dtype.is_complex, signed

    assert described(getattr(taeda, name)) == described(getattr(torch, name))


def test_tables_load_no_more_than_they_need():
    """importlib.abc would load tempfile, random, urllib and others."""
    program = "import sys, taeda; taeda.nn, taeda.optim; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], env=ENVIRONMENT, text=True)
    assert "taeda._missing" in loaded.split()
    assert not {"importlib.resources", "tempfile", "urllib"} & set(loaded.split())
