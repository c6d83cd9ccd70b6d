"""MaskedTensor beside PyTorch's: what is printed shows data and mask."""

import re

import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

DATA = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]
MASK = [[True, False, False], [True, True, False]]


def masked(lib, **options):
    return lib.masked.masked_tensor(lib.tensor(DATA), lib.tensor(MASK), **options)


OPERATIONS = {
    "sum": lambda lib, x: x.sum(),
    "sum of a row": lambda lib, x: x.sum(1),
    "keepdim": lambda lib, x: lib.sum(x, 1, keepdim=True),
    "mean": lambda lib, x: x.mean(0),
    "amax": lambda lib, x: lib.amax(x, 0),
    "amin": lambda lib, x: x.amin(1),
    "std": lambda lib, x: x.std(1),
    "var": lambda lib, x: lib.var(x),
    "prod": lambda lib, x: x.prod(),
    "all": lambda lib, x: (x > 1).all(),
    "all of a row": lambda lib, x: (x > 1).all(1),
    "argmax": lambda lib, x: x.argmax(1),
    "argmin": lambda lib, x: x.argmin(),
    "softmax": lambda lib, x: x.softmax(-1),
    "add": lambda lib, x: x + x,
    "scalar": lambda lib, x: x + 1,
    "plain": lambda lib, x: x * lib.ones(2, 3),
    "broadcast": lambda lib, x: x / lib.tensor([2.0, 3.0, 4.0]),
    "pointwise": lambda lib, x: x.exp().sin(),
    "clamp": lambda lib, x: x.clamp(0, 0.9),
    "power": lambda lib, x: x**2,
    "compare": lambda lib, x: x < 3,
    "row": lambda lib, x: x[0],
    "columns": lambda lib, x: x[:, 1:],
    "indices": lambda lib, x: x[:, lib.tensor([2, 0])],
    "t": lambda lib, x: x.t(),
    "view": lambda lib, x: x.view(3, 2),
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "split": lambda lib, x: lib.split(x, 1)[1],
    "expand": lambda lib, x: x[0].expand(2, 3),
    "where": lambda lib, x: lib.where(lib.tensor(DATA) > 2, x, masked(lib)),
    "half": lambda lib, x: x.to(lib.float16),
    "double": lambda lib, x: x.double().sum(),
    "clone": lambda lib, x: x.clone(),
    "written": lambda lib, x: masked(lib).add_(1).mul_(2),
    "like": lambda lib, x: lib.ones_like(x),
    "tensor": lambda lib, x: x.to_tensor(7.0),
    "data": lambda lib, x: x.get_data(),
    "mask": lambda lib, x: x.get_mask(),
    "integers": lambda lib, x: lib.masked.masked_tensor(lib.arange(3), lib.tensor(MASK[1])),
    "no dimensions": lambda lib, x: lib.masked.masked_tensor(lib.tensor(3), lib.tensor(False)),
    "item": lambda lib, x: x.sum().item(),
    "cumsum": lambda lib, x: lib.masked.cumsum(x, 0),
}


def text(value):
    return re.sub(r", grad_fn=<\w+>", "", str(value))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    ours, theirs = (text(OPERATIONS[name](lib, masked(lib))) for lib in (taeda, torch))
    assert ours == theirs


DIFFERENTIABLE = (
    "sum,mean,amax,std,prod,add,plain,broadcast,pointwise,power,row,t,view,cat,where,double,clone,"
    "tensor,data"
).split(",")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    shown = []
    for lib in (taeda, torch):
        x = masked(lib, requires_grad=True)
        OPERATIONS[name](lib, x).sum().backward()
        assert lib.masked.is_masked_tensor(x.grad)
        shown.append([f"{v:.4g}" for v in x.grad.to_tensor(-7.0).reshape(-1).tolist()])
    assert shown[0] == shown[1]


def test_the_gradient_of_softmax():
    gradients = []
    for lib in (taeda, torch):
        x = masked(lib, requires_grad=True)
        (x.softmax(-1) * masked(lib)).sum().backward()
        gradients.append(x.grad.to_tensor(0.0).reshape(-1).tolist())
    assert gradients[0] == pytest.approx(gradients[1], abs=1e-6)


def test_gradients_lead_through_as_masked_tensor():
    x = taeda.ones(2, 3, requires_grad=True)
    taeda.masked.as_masked_tensor(x, taeda.tensor(MASK)).sum().backward()
    assert x.grad.get_mask().tolist() == MASK


ERRORS = {
    "masks differ": lambda lib, x: (
        x + lib.masked.masked_tensor(lib.tensor(DATA), ~lib.tensor(MASK))
    ),
    "mask's dtype": lambda lib, x: lib.masked.masked_tensor(lib.ones(2), lib.ones(2)),
    "dtype": lambda lib, x: lib.masked.masked_tensor(
        lib.ones(2, dtype=lib.uint8), lib.ones(2, dtype=lib.bool)
    ),
    "dimensions": lambda lib, x: lib.masked.masked_tensor(lib.tensor(DATA), lib.tensor(MASK[0])),
    "sizes": lambda lib, x: lib.masked.masked_tensor(lib.ones(3), lib.tensor(MASK[0][:2])),
    "nested": lambda lib, x: lib.masked.masked_tensor(x, lib.tensor(MASK)),
    "no tensor": lambda lib, x: lib.masked.masked_tensor([1.0], lib.tensor(MASK)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    errors = []
    for lib in (taeda, torch):
        with pytest.raises((TypeError, ValueError)) as raised:
            ERRORS[name](lib, masked(lib))
        errors.append((raised.type, str(raised.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("call", [lambda x: x.cumsum(0), lambda x: x @ x.t()])
def test_what_has_no_rule_raises(call):
    with pytest.raises(TypeError):
        call(masked(taeda))


SPARSE = {
    "itself": lambda lib, x: x,
    "dense": lambda lib, x: x.to_dense(),
    "back": lambda lib, x: x.to_dense().to_sparse(),
    "by rows": lambda lib, x: x.to_sparse_csr(),
    "scaled": lambda lib, x: x * 2,
    "sum of two": lambda lib, x: x + x,
    "pointwise": lambda lib, x: x.sin(),
    "sum": lambda lib, x: x.sum(),
}


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("name", SPARSE)
def test_data_and_mask_in_a_sparse_layout(name, layout):
    shown = []
    for lib in (taeda, torch):
        data, mask = lib.tensor(DATA), lib.tensor(MASK)
        if layout == "sparse_csr" and name in ("sum of two", "back", "by rows", "pointwise"):
            pytest.skip("PyTorch raises of these by rows")
        pattern = mask.to_sparse(layout=getattr(lib, layout))
        values = (data * mask).to_sparse(layout=getattr(lib, layout))
        x = lib.masked.masked_tensor(values, pattern)
        assert x.is_sparse_coo() == (layout == "sparse_coo") and x.layout == values.layout
        found = SPARSE[name](lib, x)
        shown.append((repr(found), str(found.layout).split(".")[1]))
    assert shown[0] == shown[1]


def test_patterns_of_data_and_mask_are_the_same():
    data, mask = taeda.tensor(DATA), taeda.tensor(MASK)
    with pytest.raises(ValueError, match="do not have the same indices"):
        taeda.masked.masked_tensor(data.to_sparse_csr(), mask.to_sparse_csr())
    x = taeda.masked.masked_tensor((data * mask).to_sparse(), mask.to_sparse(), requires_grad=True)
    x.sin().sum().backward()
    assert taeda.allclose(x.grad.to_dense()._masked_data[mask], data.cos()[mask])
