"""Factories with a sparse layout=, and gradients of elementwise functions, beside PyTorch's."""

import pytest

import taeda

torch = pytest.importorskip("torch")

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc"]


def described(x):
    return str(x.layout).split(".")[1], tuple(x.shape), str(x.dtype), x.requires_grad, x._nnz()


CALLS = {
    "zeros": lambda lib, layout: lib.zeros(2, 3, layout=layout),
    "zeros of a list": lambda lib, layout: lib.zeros([2, 3], layout=layout, dtype=lib.float64),
    "zeros with batches": lambda lib, layout: lib.zeros((4, 2, 3), layout=layout),
    "a leaf": lambda lib, layout: lib.zeros(2, 3, layout=layout, requires_grad=True),
    "empty": lambda lib, layout: lib.empty((2, 3), layout=layout),
    "zeros_like": lambda lib, layout: lib.zeros_like(lib.ones(2, 3).double(), layout=layout),
    "like itself": lambda lib, layout: lib.zeros_like(lib.zeros(2, 3, layout=layout)),
    "new_zeros": lambda lib, layout: lib.ones(2).int().new_zeros(2, 3, layout=layout),
    "new_empty": lambda lib, layout: lib.ones(2).new_empty((2, 3), layout=layout),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_what_a_factory_makes_in_a_sparse_layout(name, layout):
    ours = CALLS[name](taeda, getattr(taeda, layout))
    theirs = CALLS[name](torch, getattr(torch, layout))
    assert described(ours) == described(theirs)
    assert ours.to_dense().tolist() == theirs.to_dense().tolist()
    if layout == "sparse_coo":
        assert ours.is_coalesced() == theirs.is_coalesced()


REFUSED = {
    "blocks": lambda lib: lib.zeros(2, 2, layout=lib.sparse_bsr),
    "one dimension": lambda lib: lib.zeros(2, layout=lib.sparse_csr),
    "full": lambda lib: lib.full((2,), 1.0, layout=lib.sparse_coo),
    "ones": lambda lib: lib.ones(2, layout=lib.sparse_coo),
    "rand": lambda lib: lib.rand(2, layout=lib.sparse_coo),
    "empty_like": lambda lib: lib.empty_like(lib.ones(2, 2), layout=lib.sparse_csr),
    "another layout": lambda lib: lib.zeros_like(lib.eye(2).to_sparse_csr(), layout=lib.strided),
    "less than nothing": lambda lib: lib.zeros(-2, 2, layout=lib.sparse_coo),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_factory_makes(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](torch)
    with pytest.raises(theirs.type):
        REFUSED[name](taeda)


def test_a_strided_tensor_like_a_sparse_one():
    for lib in (taeda, torch):
        x = lib.zeros_like(lib.eye(3).to_sparse(), layout=lib.strided)
        assert x.layout == lib.strided and x.tolist() == [[0.0] * 3] * 3
        assert lib.ones_like(lib.eye(2).to_sparse(), layout=lib.strided).sum() == 4


FUNCTIONS = {
    "pow": lambda x: x.pow(2),
    "power": lambda x: x**3,
    "square": lambda x: x.square(),
    "log1p": lambda x: x.log1p(),
    "abs": lambda x: x.abs(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("coalesced", [True, False])
def test_gradients_have_the_pattern(name, coalesced):
    found = []
    for lib in (taeda, torch):
        values = lib.tensor([0.5, 2.0, -0.25, 1.0], dtype=lib.float64)
        x = lib.sparse_coo_tensor([[0, 1, 1, 0], [1, 0, 2, 1]], values, (2, 3))
        x = (x.coalesce() if coalesced else x).detach().requires_grad_()
        FUNCTIONS[name](x).to_dense().sum().backward()
        assert x.grad.layout == lib.sparse_coo
        found.append(x.grad.to_dense())
    assert taeda.testing.assert_close(found[0].tolist(), found[1].tolist()) is None


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("name", ["sin", "sinh", "asinh", "atan", "erf", "tanh", "log1p", "square"])
def test_gradients_that_pytorch_refuses_are_those_of_the_values(name, layout):
    dense = taeda.tensor([[0.0, 0.5], [-0.3, 0.0]], dtype=taeda.float64)
    x = dense.to_sparse(layout=getattr(taeda, layout)).requires_grad_()
    getattr(x, name)().to_dense().sum().backward()
    values = dense[dense != 0].requires_grad_()
    getattr(values, name)().sum().backward()
    assert taeda.allclose(x.grad.to_dense()[dense != 0], values.grad)
    assert x.grad._nnz() == 2


def test_elements_outside_of_the_pattern_do_not_count():
    x = taeda.eye(3).to_sparse()
    other = taeda.full((3, 3), 2.0)
    made = taeda.ops.taeda.log1p_grad0(x, other)
    assert made.layout == taeda.sparse_coo and made._nnz() == 3
    assert taeda.allclose(made.to_dense(), taeda.eye(3) / 3)
