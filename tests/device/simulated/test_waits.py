"""Which operators wait for the device, and which run on the CPU, over the table's samples: those of
whom PyTorch's wait, too, and those of tests/ops/on_fallback.txt."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load
from tests.ops import samples as grid

import taeda
from taeda import _C

ROOT = Path(__file__).resolve().parents[3]
OPS = load(ROOT / "ops")
LIST = ROOT / "tests" / "ops" / "on_fallback.txt"
ON_FALLBACK = set(LIST.read_text(encoding="utf-8").split("\n"))
# The size of the result is in the elements, or a number among the arguments is a tensor, or what is
# chosen is on the host (PyTorch's combinations are chosen by a mask).
SIZES = """
argwhere bincount masked_select nonzero nonzero_numpy one_hot repeat_interleave_self_tensor
repeat_interleave_tensor _unique2 _unique_consecutive unique_dim where_condition
narrow_Tensor tensor_split_tensor linspace_tensor linspace_end_tensor logspace_tensor
logspace_end_tensor combinations
""".split()
# The answer is the host's, or arguments are checked by their elements, or a list becomes a tensor.
ANSWERS = """
histogram_bin_ct histogram_bins_tensor histogramdd histogramdd_int_bins
histogramdd_TensorList_bins unravel_index ctc_loss
allclose equal embedding_renorm_ gaussian_nll_loss gaussian_nll_loss_number histc istft
segment_reduce
""".split()
# Gradients of products differ where there is a zero; those of masked_scatter have a mask's size.
GRADIENTS = (
    "combinations index_reduce masked_prod masked_scatter prod scatter_reduce_two segment_reduce"
).split()


def tensors(values: Any) -> Iterator[taeda.Tensor]:
    if isinstance(values, taeda.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors(value)


def calls() -> Iterator[tuple[Op, str, Callable, Callable]]:
    """Each operator's samples: the function, and what makes its arguments anew."""
    for op in OPS:
        if not op.python or not grid.samples(op) or grid.place(op, taeda) is None:
            continue
        kinds = grid.dtypes(op)
        dtype = "float32" if "float32" in kinds else kinds[0]
        for sample in grid.samples(op):

            def made(op: Op = op, sample: str = sample, dtype: str = dtype) -> Any:
                maker = grid.maker(op, taeda, dtype, "plain", sample, device_name="cuda")
                return maker.arguments(sample)

            yield op, sample, grid.place(op, taeda), made


def result_of(call: Callable, made: Callable, differentiated: bool) -> list[taeda.Tensor]:
    """The results, with their gradients' graph if one is wanted."""
    args, named = made()
    for t in tensors([[*args], [*named.values()]]):
        if differentiated and t.is_floating_point() and t.is_leaf:
            t.requires_grad_()
    return [t for t in tensors(call(*args, **named)) if t.requires_grad or not differentiated]


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of what is deprecated


@pytest.fixture
def seen(simulator, quiet_fallback):
    """Runs work twice, for kernels are loaded the first time: whether the host waited, and whether
    something ran on the CPU."""

    def run(prepare: Callable[[], Callable[[], Any]]) -> tuple[bool, set[str]]:
        prepare()()
        work = prepare()
        taeda.cuda.synchronize()
        _C._reset_fallback_counts()
        before = _C._host_reads(), simulator.count("synchronizations")
        work()
        after = _C._host_reads(), simulator.count("synchronizations")
        return before != after, set(_C._fallback_counts())

    return run


def test_operators_wait_where_pytorchs_do(seen):
    waiting, fallen, count = set(), set(), 0
    for op, _, call, made in calls():

        def prepare(call: Callable = call, made: Callable = made) -> Callable[[], Any]:
            args, named = made()
            return lambda: call(*args, **named)

        waits, on_cpu = seen(prepare)
        fallen |= on_cpu
        count += 1
        if waits and not on_cpu:
            waiting.add(op.ident)
    assert count > 2000
    assert fallen <= ON_FALLBACK
    assert waiting == {*SIZES, *ANSWERS}


def test_gradients_wait_where_pytorchs_do(seen):
    waiting, fallen, count = set(), set(), 0
    for op, _, call, made in calls():
        if "float32" not in grid.dtypes(op) or op.name.endswith("_"):
            continue

        def prepare(call: Callable = call, made: Callable = made) -> Callable[[], Any]:
            results = result_of(call, made, True)
            ones = [taeda.ones_like(y) for y in results]
            return lambda: results and taeda.autograd.backward(results, ones)

        try:
            waits, on_cpu = seen(prepare)
        except RuntimeError:
            continue  # there is no derivative in an argument
        fallen |= on_cpu
        count += 1
        if waits and not on_cpu:
            waiting.add(op.ident)
    assert count > 1500
    assert fallen <= ON_FALLBACK
    assert waiting == set(GRADIENTS)


def test_classes_that_nobody_counted_are_read_once(seen):
    classes = taeda.tensor([1, 0, 3], device="cuda")
    taeda.nn.functional.one_hot(classes)
    before = _C._host_reads()
    found = taeda.nn.functional.one_hot(classes)
    assert _C._host_reads() == before + 1
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    taeda.nn.functional.one_hot(classes - 1)
    with pytest.raises(RuntimeError, match=r"Class values must be non-negative\. Class -1 is not"):
        taeda.cuda.synchronize()
    with pytest.raises(RuntimeError, match="Class values must be non-negative"):
        taeda.nn.functional.one_hot(classes - 9)


def test_the_average_of_models_waits_for_nothing(seen):
    def prepare() -> Callable[[], Any]:
        model = taeda.nn.LayerNorm(4, device="cuda")
        average = taeda.optim.swa_utils.AveragedModel(model)
        average.update_parameters(model)
        return lambda: average.update_parameters(model)

    assert seen(prepare) == (False, set())


# One number, where a mask is true or at some indices, is written without a count of them.
WRITES: dict[str, Callable[[taeda.Tensor, taeda.Tensor], Any]] = {
    "a mask of all": lambda x, i: x.__setitem__(x > 0, 2),
    "a mask of rows": lambda x, i: x.__setitem__(x[:, 0] > 0, taeda.tensor(2.0)),
    "a mask behind a slice": lambda x, i: x.__setitem__((slice(None), x[0] > 0), 2),
    "a mask before None": lambda x, i: x.__setitem__((x[:, 0] > 0, None), 2),
    "indices": lambda x, i: x.__setitem__(i, 2),
    "a tensor of the host's": lambda x, i: x.index_put_((i,), taeda.tensor(2.0)),
    "fill_": lambda x, i: x.fill_(taeda.tensor(2.0)),
    "masked_fill_": lambda x, i: x.masked_fill_(x > 0, taeda.tensor(2.0)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_number_is_written_without_waiting(seen, write):
    host = taeda.arange(-6.0, 6.0).view(3, 4).flip(0)
    host[2, 2] = -7
    x, i = host.cuda(), taeda.tensor([2, 0], device="cuda")
    assert seen(lambda: lambda: write(x, i)) == (False, set())
    write(host, i.cpu())
    assert x.tolist() == host.tolist()
    graph, y = taeda.cuda.CUDAGraph(), host.neg().cuda()
    expected = host.neg()
    with taeda.cuda.graph(graph):
        write(y, i)
    graph.replay()
    write(expected, i.cpu())
    assert y.tolist() == expected.tolist()
