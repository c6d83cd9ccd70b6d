"""split_module beside PyTorch's: the code of the parts and of the whole."""

import pytest

import taeda
from taeda.fx.passes.split_module import split_module

torch = pytest.importorskip("torch")
from torch.fx.passes import split_module as theirs  # noqa: E402


def model_of(lib):
    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = lib.nn.Parameter(lib.ones(3, 4))
            self.inner = lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.ReLU())

        def forward(self, x, y):
            z = self.inner(x + self.param).clamp(min=0.0, max=1.0)
            w = self.inner(y).clamp(min=0.0, max=1.0)
            return z + w

    return Model()


def split(lib, parts, **options):
    model = model_of(lib)
    traced = lib.fx.symbolic_trace(model)
    count = iter(range(100))
    function = split_module if lib is taeda else theirs.split_module
    paths = {}
    result = function(traced, model, lambda node: next(count) * parts // 9, paths, **options)
    return model, result, paths


def code(module):
    return {name: m.code for name, m in module.named_modules() if hasattr(m, "code")}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep_original_order": True},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "x"},
        {"tuple_return": True},
    ],
    ids=lambda options: "".join(options) or "default",
)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_code_is_pytorchs(parts, options):
    (_, ours, paths), (_, other, their_paths) = (
        split(lib, parts, **options) for lib in (taeda, torch)
    )
    assert code(ours) == code(other)
    assert paths == their_paths


def test_the_module_computes_the_same():
    model, result, _ = split(taeda, 3)
    x, y = taeda.randn(3, 4), taeda.randn(3, 4)
    assert taeda.equal(result(x, y), model(x, y))
    assert {n for n, _ in result.named_children()} == {"submod_0", "submod_1", "submod_2"}


def test_cycles_are_refused():
    traced = taeda.fx.symbolic_trace(lambda x: ((x + 1) * 2) - 3)
    numbers = iter([0, 1, 0])
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(traced, taeda.nn.Module(), lambda node: next(numbers))
