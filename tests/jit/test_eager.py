"""torch.jit, torch.compile and futures: what runs eagerly, and what raises."""

import copy
import pickle
import subprocess
import sys
import threading
from typing import Dict, List, Optional  # noqa: UP035

import pytest
from tests.children import ENVIRONMENT

import taeda
from taeda import _dynamo, nn
from taeda.futures import Future, collect_all, wait_all


def test_scripts_and_traces_run_the_module() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    x = taeda.ones(2)
    for made in (taeda.jit.script(model), taeda.jit.trace(model, x)):
        assert isinstance(made, taeda.jit.ScriptModule)
        assert isinstance(made, nn.Sequential)
        assert made.original_name == "Sequential"
        assert made[0].weight is model[0].weight
        assert list(made.state_dict()) == list(model.state_dict())
        assert taeda.equal(made(x), model(x))
        assert taeda.equal(copy.deepcopy(made)(x), model(x))
        assert taeda.jit.script(made) is made
        with pytest.raises(NotImplementedError, match="no script compiler"):
            made.graph  # noqa: B018
    assert not isinstance(model, taeda.jit.ScriptModule)
    assert isinstance(taeda.jit.script(model), taeda.jit.RecursiveScriptModule)
    with pytest.raises(RuntimeError):
        taeda.jit.trace(model, taeda.ones(3))


def test_only_scripts_are_frozen() -> None:
    scripted = taeda.jit.script(nn.Linear(2, 1))
    with pytest.raises(RuntimeError, match="eval mode"):
        taeda.jit.freeze(scripted)
    assert taeda.jit.freeze(scripted.eval()) is scripted
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        taeda.jit.freeze(nn.Linear(2, 1).eval())


@taeda.jit.script
def _doubled(x: taeda.Tensor, times: int = 2) -> taeda.Tensor:
    return times * x


def test_scripted_functions_run_the_function() -> None:
    assert isinstance(_doubled, taeda.jit.ScriptFunction)
    assert _doubled.name == _doubled.__name__ == "_doubled"
    assert int(_doubled(taeda.tensor(2), times=3)) == 6
    assert pickle.loads(pickle.dumps(_doubled)) is _doubled
    assert copy.deepcopy(_doubled) is _doubled
    assert isinstance(taeda.jit.trace(lambda x: x + 1, taeda.ones(1)), taeda.jit.ScriptFunction)
    with pytest.raises(NotImplementedError, match="no script compiler"):
        _doubled.code  # noqa: B018


def test_script_modules_run_eagerly_and_save_nothing() -> None:
    class Double(taeda.jit.ScriptModule):
        @taeda.jit.script_method
        def forward(self, x):
            return 2 * x

    assert float(Double()(taeda.tensor(2.0))) == 4
    with pytest.raises(NotImplementedError, match="state_dict"):
        Double().save("file")
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.load"):
        taeda.jit.load("file")


def test_isinstance_looks_into_containers() -> None:
    assert taeda.jit.isinstance({"a": [1]}, Dict[str, List[int]])  # noqa: UP006
    assert not taeda.jit.isinstance(["a"], List[int])  # noqa: UP006
    assert taeda.jit.isinstance(None, Optional[int])  # noqa: UP045


def test_nothing_is_compiled_where_the_environment_says_so(monkeypatch) -> None:
    model, function = nn.Linear(2, 2), lambda x: x
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    assert taeda.compile(model) is model and taeda.compile()(function) is function
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    assert taeda.compile(model) is not model


def test_a_compiled_module_shows_its_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    compiled = taeda.compile(model, mode="default")
    assert isinstance(compiled, _dynamo.OptimizedModule)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    compiled.eval()
    assert not model.training
    compiled.limit = 3
    assert model.limit == 3
    x = taeda.randn(2)
    for copied in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert taeda.equal(copied(x), model(x))
    model.compile()
    assert taeda.equal(pickle.loads(pickle.dumps(model))(x), model(x))


def test_compile_is_a_decorator_and_checks_its_options() -> None:
    @taeda.compile(dynamic=True)
    def double(x):
        return 2 * x

    assert double.__name__ == "double"
    assert float(double(taeda.tensor(2.0))) == 4
    with pytest.raises(RuntimeError, match="Either mode or options"):
        taeda.compile(double, mode="default", options={})
    with pytest.raises(_dynamo.exc.InvalidBackend, match="Invalid backend: 'nope'"):
        taeda.compile(double, backend="nope")
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        taeda.compile(double, mode="fast")
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        taeda.compile(double, bogus=1)
    with pytest.raises(AssertionError, match="callable"):
        taeda.compile(3)


@pytest.mark.parametrize("function", ["script", "trace", "trace_module", "freeze"])
def test_misspelt_keywords_are_refused(function) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        getattr(taeda.jit, function)(nn.Linear(1, 1), bogus=1)


def test_a_module_is_traced_by_keyword() -> None:
    layer, x = nn.Linear(2, 1), taeda.ones(1, 2)
    traced = taeda.jit.trace_module(layer, {"forward": {"input": x}}, example_inputs_is_kwarg=True)
    assert taeda.equal(traced(x), layer(x))


def test_settings_are_patched_in_blocks_and_functions() -> None:
    @_dynamo.config.patch("verbose", True)
    def verbose() -> bool:
        return _dynamo.config.verbose

    assert verbose()
    assert not _dynamo.config.verbose


def test_cond_and_while_loop() -> None:
    x = taeda.tensor(3.0)
    assert taeda.cond(x > 2, taeda.sin, taeda.cos, (x,)) == taeda.sin(x)
    value, count = taeda.while_loop(lambda v, n: v < 20, lambda v, n: (v * 2, n + 1), (x, 0))
    assert (float(value), count) == (24, 3)
    with pytest.raises(RuntimeError, match="single-element"):
        taeda.cond(taeda.ones(2), taeda.sin, taeda.cos, (x,))


def test_futures_wait_and_call_back() -> None:
    future: Future = Future()
    chained = future.then(lambda f: f.value() + 1).then(lambda f: f.value() / 0)
    threading.Timer(0, future.set_result, (41,)).start()
    assert wait_all([future]) == [41]
    with pytest.raises(ZeroDivisionError):
        chained.wait()
    assert all(f.done() for f in collect_all([future, chained]).wait())
    with pytest.raises(RuntimeError, match="completed Future as complete again"):
        future.set_result(1)


@pytest.mark.parametrize("value", ["0", "false", "1", "yes", None])
def test_pytorch_jit_in_the_environment_switches_wrapping_off(value: str | None) -> None:
    code = """
import taeda as torch
layer = torch.nn.Linear(2, 2)
f = lambda x: x
print(torch.jit.script(layer) is layer, torch.jit.trace(f, torch.ones(1)) is f)
torch.jit._state.disable()
print(torch.jit.script(layer) is layer)
"""
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "PYTORCH_JIT"}
    environment |= {} if value is None else {"PYTORCH_JIT": value}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    off = value in ("0", "false")
    assert done.stdout.split() == [str(off), str(off), "True"], done.stderr
