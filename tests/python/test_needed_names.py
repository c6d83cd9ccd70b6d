"""What two or more public programs, or libraries that they import, read in torch is there: it is
real, or it raises once it is called and docs/coverage.md counts it as missing."""

import csv
import importlib
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
coverage = importlib.import_module("coverage")


def rows(name):
    with open(ROOT / "tools" / "data" / name, newline="") as file:
        return [r for r in csv.DictReader(file) if int(r["programs"]) >= 2]


def state(row):
    """Of a row: its first word is torch, Tensor, Module or a class whose objects have the name."""
    first, _, rest = row["api"].partition(".")
    if first == "torch":
        return coverage.state(taeda, rest) if rest else "works"
    found = coverage.state(taeda, f"{coverage.OWNERS[first]}.{rest}")
    there = coverage.has_instances_attribute(taeda, first, rest)
    return "works" if there else found


@pytest.mark.parametrize("table", ["usage.csv", "imports.csv"])
def test_every_name_that_two_programs_use_is_there(table):
    found = {row["api"]: state(row) for row in rows(table)}
    assert len(found) > 100
    assert [name for name, is_there in found.items() if is_there == "missing"] == []


def test_the_check_would_find_a_missing_name():
    assert state({"api": "torch.no_such_name"}) == "missing"
    assert state({"api": "torch.jit.no_such_name"}) == "missing"
    assert state({"api": "Tensor.no_such_name"}) == "missing"


def test_private_names_are_pytorchs_and_those_of_pytorch_are_there():
    torch = pytest.importorskip("torch")
    private = [
        name
        for name, value in vars(torch).items()
        if name.startswith("_") and not name.startswith("__")
        and callable(value) and not isinstance(value, type)
        and getattr(value, "__module__", None) not in ("typing", "typing_extensions", "warnings")
    ]  # fmt: skip
    assert len(private) > 300
    missing = [name for name in private if not hasattr(taeda, name)]
    assert missing == []


@pytest.mark.parametrize("name", ["_cudnn_rnn", "_nested_from_padded", "_test_check_tensor"])
def test_a_private_name_that_is_missing_raises_once_it_is_called(name):
    with pytest.raises(NotImplementedError, match=f"{name}: "):
        getattr(taeda, name)()


PRIVATE = {
    "_adaptive_avg_pool2d": lambda t, x: t._adaptive_avg_pool2d(x[None], (2, 2)),
    "_stack": lambda t, x: t._stack([x, x], 1),
    "_aminmax": lambda t, x: t._aminmax(x),
    "_aminmax of a row": lambda t, x: t._aminmax(x, 1, True),
    "_logcumsumexp": lambda t, x: t._logcumsumexp(x, 0),
    "_dim_arange": lambda t, x: t._dim_arange(x, 1),
    "_reshape_from_tensor": lambda t, x: t._reshape_from_tensor(x, t.tensor([4, 3, 2])),
    "_cast_Double": lambda t, x: t._cast_Double(x),
    "_masked_softmax": lambda t, x: t._masked_softmax(x, x > 0.5, 1, 2),
    "_add_relu": lambda t, x: t._add_relu(x, x - 1),
    "_addmm_activation": lambda t, x: tuple(
        t._addmm_activation(x[0, 0], x[0], x[1], use_gelu=gelu) for gelu in (False, True)
    ),
    "_convolution_mode": lambda t, x: t._convolution_mode(
        x, x[:, :, :3].contiguous(), None, [1], "same", [1], 1
    ),
    "_index_put_impl_": lambda t, x: t._index_put_impl_(x.clone(), [t.tensor([0])], x[1]),
    "_pack_padded_sequence": lambda t, x: t._pack_padded_sequence(x, t.tensor([3, 2]), True),
    "_pad_packed_sequence": lambda t, x: t._pad_packed_sequence(
        x[0], t.tensor([2, 1]), False, 0.0, 3
    ),
    "_is_all_true": lambda t, x: t._is_all_true(x > -9),
    "_weight_norm_interface": lambda t, x: t._weight_norm_interface(x, x[:, :1, :1] + 0, 0),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_function_gives_what_pytorchs_does(name):
    torch = pytest.importorskip("torch")
    data = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    if name == "_addmm_activation":
        data = data[:, :, :3]
    if name == "_convolution_mode":
        data = torch.randn(3, 3, 5, generator=torch.Generator().manual_seed(0))
    theirs = PRIVATE[name](torch, data.contiguous())
    ours = PRIVATE[name](taeda, taeda.tensor(data.tolist()))
    pairs = [(ours, theirs)] if not isinstance(theirs, tuple) else zip(ours, theirs, strict=True)
    for our, their in pairs:
        assert str(our.dtype) == str(their.dtype)
        assert taeda.allclose(our, taeda.tensor(their.tolist(), dtype=our.dtype), atol=1e-6)


def test_the_scale_of_a_loss_moves_as_pytorchs():
    torch = pytest.importorskip("torch")
    found = []
    for t in (taeda, torch):
        scale, tracker, steps = t.tensor(8.0), t.tensor(0, dtype=t.int32), []
        for value in (1.0, 2.0, float("inf"), 3.0):
            gradient, infinite = t.tensor([value, 1.0]), t.tensor(0.0)
            t._amp_foreach_non_finite_check_and_unscale_([gradient], infinite, t.tensor(0.5))
            t._amp_update_scale_(scale, tracker, infinite, 2.0, 0.5, 2)
            steps.append((scale.item(), tracker.item(), infinite.item(), gradient[1].item()))
        found.append(steps)
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_parts_of_sparse_tensors_are_validated(layout):
    indices, values = taeda.tensor([[0, 5]]), taeda.ones(2)
    if layout == "sparse_coo":
        taeda._validate_sparse_coo_tensor_args(indices, values, (6,))
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            taeda._validate_sparse_coo_tensor_args(indices, values, (3,))
    else:
        parts = taeda.tensor([0, 1, 2]), taeda.tensor([0, 1]), values
        taeda._validate_sparse_csr_tensor_args(*parts, (2, 2))
        with pytest.raises(RuntimeError, match="col_indices"):
            taeda._validate_sparse_csr_tensor_args(*parts, (2, 1))
