"""Indices that are out of bounds on a simulated device: each raises where the host next waits, with
the operator, the index and the bound, and the context lives on.

Which operators take indices follows from the table: of each sample, every tensor of integers is
given one that is far out, and what the CPU then refuses the device has to refuse.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load
from tests.ops import samples as grid

import taeda
from taeda import _C

F = taeda.nn.functional
FAR = 987654  # no sizes to be afraid of
OPERATORS = [
    op for op in load(Path(__file__).resolve().parents[3] / "ops")
    if op.python and grid.samples(op) and grid.place(op, taeda) is not None
]  # fmt: skip
# Counted, not looked up: what is wrong with them has no bound, or concerns all of them.
# The functions that call it, or that it calls.
PUBLIC = {"bag_sum": ("embedding_bag",), "linear_cross_entropy": ("cross_entropy",)}
WITHOUT_A_BOUND = ("bincount", "repeat_interleave", "segment_reduce", "tensor_split")


@pytest.fixture(autouse=True)
def quiet_fallback():
    _C._set_fallback("quiet")
    yield
    _C._set_fallback("warn")


def is_index(value: Any) -> bool:
    kind = getattr(value, "dtype", None)
    return isinstance(value, taeda.Tensor) and kind in (taeda.int64, taeda.int32)


def tensors(arguments: Any) -> Iterator[tuple[Any, Any]]:
    """Where the tensors of integers are: a list and a position, of nested lists."""
    for i, value in enumerate(arguments):
        if is_index(value) and value.numel() > 0:
            yield arguments, i
        elif isinstance(value, list):
            yield from tensors(value)


def as_lists(value: Any) -> Any:
    return [as_lists(v) for v in value] if isinstance(value, list | tuple) else value


def calls(op: Op) -> Iterator[Callable[[str], Any]]:
    """Calls with one bad index each, for a device."""
    call, dtype = grid.place(op, taeda), grid.dtypes(op)[0]
    kinds = grid.dtypes(op)
    dtype = "float32" if "float32" in kinds else kinds[0]
    for sample in grid.samples(op):

        def made(device: str, sample: str = sample) -> tuple[list[Any], list[Any]]:
            maker = grid.maker(op, taeda, dtype, "plain", sample, device_name=device)
            args, named = maker.arguments(sample)
            return as_lists(args), [as_lists(v) for v in named.values()], list(named)

        args, named, _ = made("cpu")
        count = len([*tensors(args), *tensors(named)])
        for number, bad in itertools.product(range(count), (FAR, -FAR)):

            def run(device: str, number: int = number, bad: int = bad, made: Any = made) -> Any:
                args, named, names = made(device)
                holder, i = [*tensors(args), *tensors(named)][number]
                spoilt = holder[i].clone()
                spoilt.view(-1)[-1] = bad
                holder[i] = spoilt
                return call(*args, **dict(zip(names, named, strict=True)))

            run.number = bad
            yield run


def error_of(run: Callable[[], Any]) -> Exception | None:
    try:
        run()
    except Exception as error:
        error.at_once = True  # the host has looked
        return error
    try:
        taeda.cuda.synchronize()
    except Exception as error:
        error.at_once = False
        return error
    return None


def takes_indices(op: Op) -> bool:
    return any("i(" in s or "torch.tensor(" in s or "int" in s for s in grid.samples(op))


@pytest.mark.parametrize("op", [op for op in OPERATORS if takes_indices(op)], ids=lambda o: o.ident)
def test_what_the_cpu_refuses_the_device_refuses(op):
    for run in calls(op):
        expected = error_of(lambda r=run: r("cpu"))
        if not isinstance(expected, RuntimeError | IndexError | ValueError):
            continue
        found = error_of(lambda r=run: r("cuda"))
        assert found is not None, f"{op.name}: the CPU says {expected}"
        assert type(found) in (type(expected), IndexError), f"{found!r}, the CPU: {expected!r}"
        if not (found.at_once and str(found) == str(expected)):
            check_text(op, str(found), str(expected), run.number)
        assert (taeda.ones(2, device="cuda") + 1).tolist() == [2, 2]


def check_text(op: Op, found: str, expected: str, bad: int) -> None:
    if op.name.startswith(WITHOUT_A_BOUND):
        return
    assert str(bad) in found, f"{found}; the CPU: {expected}"
    paths = [op.name, *op.python, *PUBLIC.get(op.name, ())]
    assert any(path.split(".")[-1].strip("_") in found for path in paths), f"{op.name}: {found}"


def test_the_table_is_gone_through():
    """That the samples of these are tried shows that none is lost."""
    tried = {op.name.rstrip("_") for op in OPERATORS if takes_indices(op) and any(calls(op))}
    known = (
        "gather scatter scatter_add scatter_reduce index_select index_add index_reduce index_copy "
        "index_fill take put index_put embedding_renorm functional_embedding bag_sum "
        "one_hot nll_loss cross_entropy multi_margin_loss bincount take_along_dim"
    )
    assert set(known.split()) <= tried, set(known.split()) - tried


X = taeda.arange(12.0).view(3, 4)


def on(device: str, *values: Any) -> Any:
    return taeda.tensor(values, device=device)


# Functions made of several operators; the class and the text are those of PyTorch's CPU.
FUNCTIONS = {
    "embedding": (
        lambda b, d: F.embedding(on(d, b), X.to(d)), IndexError, "index out of range in self", 3,
    ),
    "embedding_renorm_": (
        lambda b, d: F.embedding(on(d, b), X.to(d), max_norm=1.0), IndexError, "out of", 3,
    ),
    "embedding_bag": (
        lambda b, d: F.embedding_bag(on(d, b), X.to(d), on(d, 0)),
        RuntimeError, "Expected idx >= 0 && idx < num_embeddings but found idx to be {}", "",
    ),
    "embedding_bag of maxima": (
        lambda b, d: F.embedding_bag(on(d, 1, b), X.to(d), on(d, 0), mode="max"),
        RuntimeError, "Expected idx >= 0 && idx < num_embeddings but found idx to be {}", "",
    ),
    "embedding_bag by offsets": (
        lambda b, d: F.embedding_bag(on(d, 1, 2), X.to(d), on(d, 0, b)),
        RuntimeError, "offsets[1] is {}", 2,
    ),
    "embedding_bag with a first offset": (
        lambda b, d: F.embedding_bag(on(d, 1, 2), X.to(d), on(d, b, 1)),
        RuntimeError, "offsets[0] has to be 0", "",
    ),
    "one_hot": (
        lambda b, d: F.one_hot(on(d, 1, b), 5), RuntimeError, "Class values must be ", 5,
    ),
    "nll_loss": (
        lambda b, d: F.nll_loss(X.to(d), on(d, 0, b, 1)),
        IndexError, "Target {} is out of bounds.", 4,
    ),
    "nll_loss of images": (
        lambda b, d: F.nll_loss(taeda.ones(1, 3, 2, 2, device=d), on(d, [[0, 1], [b, 2]])),
        IndexError, "Target {} is out of bounds.", 3,
    ),
    "cross_entropy": (
        lambda b, d: F.cross_entropy(X.to(d), on(d, 0, b, 1)),
        IndexError, "Target {} is out of bounds.", 4,
    ),
    "cross_entropy of weights": (
        lambda b, d: F.cross_entropy(
            X.to(d), on(d, 0, b, 1), taeda.ones(4, device=d).requires_grad_()
        ),
        IndexError, "Target {} is out of bounds.", 4,
    ),
    "multi_margin_loss": (
        lambda b, d: F.multi_margin_loss(X.to(d), on(d, 0, b, 1)),
        RuntimeError, "target out of range", 4,
    ),
    "multilabel_margin_loss": (
        lambda b, d: F.multilabel_margin_loss(X.to(d), taeda.full((3, 4), b, device=d)),
        RuntimeError, "argument #2 'target' is out of range", 4,
    ),
    "ctc_loss": (
        lambda b, d: F.ctc_loss(taeda.zeros(4, 1, 5, device=d), on(d, [b]), on(d, 4), on(d, 1)),
        RuntimeError, "", 5,
    ),
    "ctc_loss of one row": (
        lambda b, d: F.ctc_loss(taeda.zeros(4, 1, 5, device=d), on(d, b), on(d, 4), on(d, 1)),
        RuntimeError, "", 5,
    ),
    **{
        f"max_unpool{n}d": (
            lambda b, d, n=n: getattr(F, f"max_unpool{n}d")(
                taeda.ones((1,) * (n + 2), device=d),
                taeda.full((1,) * (n + 2), b, device=d), 2,
            ),
            RuntimeError, "Found an invalid max index: {}", 2**n,
        )
        for n in (1, 2, 3)
    },
    "searchsorted": (
        lambda b, d: taeda.searchsorted(on(d, 1.0, 2.0), on(d, 1.0), sorter=on(d, 0, b)),
        RuntimeError, "sorter index out of range", 2,
    ),
    "index": (lambda b, d: X.to(d)[on(d, b)], IndexError, "index {} is out of bounds", 3),
    "index_put_": (
        lambda b, d: X.to(d).index_put_((on(d, b),), on(d, 1.0)),
        IndexError, "index {} is out of bounds", 3,
    ),
    "index_reduce": (
        lambda b, d: X.to(d).index_reduce(0, on(d, b), taeda.ones(1, 4, device=d), "amax"),
        IndexError, "out of", 3,
    ),
    "scatter_add": (
        lambda b, d: X.to(d).scatter_add(1, on(d, [b]), taeda.ones(1, 1, device=d)),
        IndexError, "index {} is out of bounds", 4,
    ),
    "scatter_reduce": (
        lambda b, d: X.to(d).scatter_reduce(1, on(d, [b]), taeda.ones(1, 1, device=d), "amax"),
        IndexError, "index {} is out of bounds", 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("bad", [FAR, -FAR])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_name_themselves_the_index_and_the_bound(name, bad):
    call, kind, text, bound = FUNCTIONS[name]
    if name == "multilabel_margin_loss" and bad < 0:
        return  # the end of the targets
    found = error_of(lambda: call(bad, "cuda"))
    said = str(found)
    assert type(found) is kind, found
    assert name.split()[0] in said and str(bad) in said and str(bound) in said, said
    assert text.format(bad) in said, said
    assert (taeda.ones(2, device="cuda") + 1).tolist() == [2, 2]


@pytest.mark.parametrize("bad", [7, -1])
def test_they_raise_after_a_graph_ran(bad):
    """What a captured operator finds raises where the host waits for a replay."""
    classes = taeda.tensor([1, 2, 3], device="cuda")
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        found = F.one_hot(classes, 5)
    graph.replay()
    assert found.argmax(1).tolist() == [1, 2, 3]
    classes[1] = bad
    graph.replay()
    with pytest.raises(RuntimeError, match=rf"one_hot\(\): Class values must be .* {bad} "):
        taeda.cuda.synchronize()


def test_ignored_targets_may_be_anywhere():
    x, target = X.cuda(), on("cuda", 0, -100, 1)
    assert F.nll_loss(x, target).item() == F.nll_loss(X, target.cpu()).item()
    far = F.nll_loss(x, on("cuda", 0, 99, 1), ignore_index=99)
    assert far.item() == F.nll_loss(X, on("cpu", 0, 99, 1), ignore_index=99).item()
