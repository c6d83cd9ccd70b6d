"""grad_fn._saved_NAME and _raw_saved_NAME: what a step of the graph keeps, as in PyTorch."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.marks import MADE_IN_BACKWARD
from tests.ops import samples as grid
from tests.ops.test_grid import DIFFERENTIABLE, flat

import taeda

# function of (framework, x of size 2 x 3) -> the attributes that both have
CASES: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "mul": (lambda t, x: (x * 2) * (x + 1), ["self", "other"]),
    "exp": (lambda t, x: x.exp(), ["result"]),
    "sum": (lambda t, x: x.sum(1, keepdim=True), ["dim", "self_sym_sizes"]),
    "leaky_relu": (lambda t, x: t.nn.functional.leaky_relu(x, 0.25), ["self", "negative_slope"]),
    "gather": (lambda t, x: x.gather(1, t.tensor([[0, 2], [1, 1]])), ["dim", "index"]),
    "clamp": (lambda t, x: x.clamp(0.25), ["self"]),
    "std": (lambda t, x: x.std(0), ["self", "result"]),
    "logsumexp": (lambda t, x: x.logsumexp(1, keepdim=True), ["keepdim", "self", "result"]),
    "amax": (lambda t, x: x.amax((0, 1)), ["dim", "keepdim", "self", "result"]),
    "max": (lambda t, x: x.max(1).values, ["dim", "keepdim", "self_sym_sizes", "indices"]),
    "gelu": (lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), ["self", "approximate"]),
}


def leaf(t: Any) -> Any:
    return t.arange(6, dtype=t.float64).div(4).reshape(2, 3).requires_grad_()


def plain(value: Any) -> Any:
    return [round(v, 12) for v in value.flatten().tolist()] if hasattr(value, "tolist") else value


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, attributes = CASES[name]
    ours, theirs = function(taeda, leaf(taeda)).grad_fn, function(torch, leaf(torch)).grad_fn
    for attribute in attributes:
        got, expected = (getattr(node, f"_saved_{attribute}") for node in (ours, theirs))
        assert plain(got) == plain(expected), attribute
        assert f"_saved_{attribute}" in dir(ours)
        assert hasattr(ours, f"_raw_saved_{attribute}") == hasattr(
            theirs, f"_raw_saved_{attribute}"
        )


def node_of(framework: Any, op: Any, sample: str) -> Any:
    source = grid.maker(op, framework, "float64", sample=sample, requires_grad=True)
    args, options = source.arguments(sample)
    results = flat(grid.place(op, framework)(*args, **options))
    return next(r.grad_fn for r in results if getattr(r, "grad_fn", None) is not None)


def saved_names(node: Any) -> set[str]:
    return {name for name in dir(node) if name.startswith("_saved_")}


def test_most_nodes_that_pytorch_has_save_what_its_do() -> None:
    """The others save less (a size for a tensor) or more than PyTorch, or under another name."""
    torch = pytest.importorskip("torch")
    equal = []
    for (op,) in (getattr(case, "values", [case]) for case in DIFFERENTIABLE):
        for sample in grid.samples(op):
            try:
                ours, theirs = node_of(taeda, op, sample), node_of(torch, op, sample)
            except Exception:  # another sample has a gradient, and is in PyTorch
                continue
            if ours.name() == theirs.name():
                equal.append(saved_names(ours) == saved_names(theirs))
                break
    assert len(equal) > 200 and sum(equal) > 0.6 * len(equal), (sum(equal), len(equal))


def test_histories() -> None:
    x = leaf(taeda)
    h = x * 2
    node = (h * x).grad_fn
    assert node._saved_other is x
    assert node._saved_self.grad_fn is h.grad_fn
    y = x.exp()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_every_operator_lists_what_it_gives() -> None:
    """What a program that draws graphs does: it asks each node for all that dir() names."""
    x = leaf(taeda)
    y = taeda.cat([x.softmax(0), taeda.nn.functional.layer_norm(x, (3,))]).max(0).values.std()
    nodes, seen = [y.grad_fn], set()
    while nodes:
        node = nodes.pop()
        nodes += [n for n, _ in node.next_functions if n is not None]
        for name in dir(node):
            if name.startswith(("_saved_", "_raw_saved_")):
                getattr(node, name)
                seen.add(name)
    assert {"_saved_self", "_raw_saved_result", "_saved_dim"} <= seen


@MADE_IN_BACKWARD
def test_hooks_on_one_saved_tensor() -> None:
    x = leaf(taeda)
    y = x.exp()
    log = []

    def pack(t: taeda.Tensor) -> list:
        log.append("pack")
        return t.detach().tolist()

    def unpack(packed: list) -> taeda.Tensor:
        log.append("unpack")
        return taeda.tensor(packed, dtype=taeda.float64)

    raw = y.grad_fn._raw_saved_result
    raw.register_hooks(pack, unpack)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(pack, unpack)
    y.sum().backward()
    assert log == ["pack", "unpack"]
    taeda.testing.assert_close(x.grad, y.detach())
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_result  # noqa: B018
    with pytest.raises(RuntimeError, match=r"after it has been freed.*second time"):
        y.grad_fn._raw_saved_result.register_hooks(pack, unpack)
    for wrong in [(pack,), (1, 2), (pack, None), (None, unpack)]:
        with pytest.raises(TypeError):
            raw.register_hooks(*wrong)


def test_hooks_are_not_set_twice_nor_on_what_the_hook_released() -> None:
    y = leaf(taeda).exp()
    raw = y.grad_fn._raw_saved_result

    def set_others(_: taeda.Tensor) -> int:
        raw.register_hooks(lambda t: t.detach().tolist(), lambda v: taeda.tensor(v))
        return 0

    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(set_others, lambda _: None)
    assert y.grad_fn._saved_result.tolist() == y.float().tolist()

    class Packed:
        pass

    packed = [Packed()]
    alive = weakref.ref(packed[0])
    y = leaf(taeda).exp()
    total = y.sum()

    def release(_: taeda.Tensor) -> Packed:
        total.backward()
        return packed.pop()

    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._raw_saved_result.register_hooks(release, lambda _: None)
    assert alive() is None  # nothing keeps what the hook gave


@MADE_IN_BACKWARD
def test_custom_function() -> None:
    class Double(taeda.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: taeda.Tensor) -> taeda.Tensor:
            ctx.save_for_backward(x)
            ctx._saved_by_hand = 5
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: taeda.Tensor) -> taeda.Tensor:
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(taeda)
    y = Double.apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda t: 3, lambda n: taeda.full((2, 3), n, dtype=taeda.float64))
    y.sum().backward()
    assert x.grad.eq(6).all()
    assert y.grad_fn._saved_by_hand == 5


def test_what_is_not_there() -> None:
    y = leaf(taeda).exp()
    for name in ("_saved_nothing", "_raw_saved_nothing", "_saved_", "nothing"):
        with pytest.raises(AttributeError, match=name):
            getattr(y.grad_fn, name)
    assert (leaf(taeda) * 2).grad_fn._saved_self is None  # not needed for the gradient of x


def test_a_hook_that_keeps_what_it_gets_keeps_no_graph() -> None:
    gc.collect()
    x = leaf(taeda)
    before = taeda._C._live_autograd_nodes()
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * 2).exp().tanh()
    del y
    gc.collect()
    assert taeda._C._live_autograd_nodes() == before


def test_the_cores_names_for_saved_tensors() -> None:
    core = taeda._C._autograd
    assert isinstance(leaf(taeda).exp().grad_fn._raw_saved_result, core.SavedTensor)
    assert core._saved_tensors_hooks_is_enabled()
    with taeda.autograd.graph.disable_saved_tensors_hooks("why"):
        assert not core._saved_tensors_hooks_is_enabled()
        assert core._saved_tensors_hooks_get_disabled_error_message() == "why"
