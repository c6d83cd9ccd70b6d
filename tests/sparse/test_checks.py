"""assert_close, gradcheck and decompositions of sparse tensors, compared with PyTorch's."""

import pytest

import taeda

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def matrix(of, layout, dtype="float64", values=(1.0, 2.0, 3.0)):
    dense = of.zeros(4, 4, dtype=getattr(of, dtype))
    for (row, column), value in zip(((0, 1), (2, 3), (3, 0)), values):
        dense[row, column] = value
    blocks = {"blocksize": (2, 2)} if layout[7] == "b" else {}
    return dense.to_sparse(layout=getattr(of, layout), **blocks)


def outcome(check):
    """None, or the error's type and text without the numbers of elements' places."""
    try:
        check()
    except Exception as error:
        return type(error).__name__, str(error).replace("taeda.", "torch.")
    return None


def outcomes_of_comparisons(of, layout):
    x, near, far, other = (
        matrix(of, layout, values=v) for v in [(1, 2, 3), (1 + 1e-9, 2, 3), (1, 2.5, 3), (0, 2, 3)]
    )
    dense = x.to_dense()
    return [
        outcome(lambda y=y, kwargs=kwargs: of.testing.assert_close(x, y, **kwargs))
        for y, kwargs in (
            (near, {}),
            (far, {}),
            (other, {}),
            (dense, {}),
            (dense, {"check_layout": False}),
            (matrix(of, layout, "float32"), {}),
        )
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_assert_close(layout):
    torch = pytest.importorskip("torch")
    found = outcomes_of_comparisons(taeda, layout)
    assert found == outcomes_of_comparisons(torch, layout)
    assert [f is None for f in found] == [True, False, False, False, True, False]


def test_assert_close_of_tensors_that_are_not_coalesced():
    """Values are compared as they are stored, as PyTorch does."""
    x = taeda.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))
    taeda.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="specified values in sparse COO tensors"):
        taeda.testing.assert_close(x, x.coalesce())


FUNCTIONS = {
    "sum": lambda of, x: of.sparse.sum(x),
    "to_dense": lambda of, x: x.to_dense(masked_grad=True),
    "mm": lambda of, x: of.sparse.mm(x, of.arange(8, dtype=of.float64).reshape(4, 2)),
    "scaled": lambda of, x: x * 3,
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_gradcheck_of_what_is_specified(layout, name, fast):
    if (layout, name) == ("sparse_csr", "sum"):
        pytest.skip("sparse.sum of compressed layouts is not differentiable")
    x = matrix(taeda, layout).requires_grad_()
    function = lambda x: FUNCTIONS[name](taeda, x)  # noqa: E731
    assert taeda.autograd.gradcheck(function, (x,), masked=True, fast_mode=fast)


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to_dense() * 2

        @staticmethod
        def backward(ctx, gy):
            return gy * 3

    x = matrix(taeda, "sparse_coo").requires_grad_()
    for masked in (True, False):
        with pytest.raises(taeda.autograd.gradcheck.GradcheckError, match="Jacobian mismatch"):
            taeda.autograd.gradcheck(Wrong.apply, (x,), masked=masked)


@pytest.mark.parametrize("masked_grad", [True, False])
def test_gradcheck_of_all_elements(masked_grad):
    """A gradient that leaves out the elements without a value is wrong unless masked."""
    torch = pytest.importorskip("torch")
    found = []
    for of in (taeda, torch):
        x = matrix(of, "sparse_coo").requires_grad_()
        dense = lambda x: x.to_dense(masked_grad=masked_grad)  # noqa: E731
        found.append(of.autograd.gradcheck(dense, (x,), raise_exception=False, masked=False))
    assert found == [not masked_grad] * 2


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_narrow_copy(dim):
    torch = pytest.importorskip("torch")
    results = []
    for of in (taeda, torch):
        x = of.sparse_coo_tensor([[0, 2, 2], [1, 0, 3]], of.arange(6.0).view(3, 2), (3, 4, 2))
        y = of.narrow_copy(x, dim, 1, 1)
        results.append((y.to_dense().tolist(), y.is_sparse))
    assert results[0] == results[1]
    with pytest.raises((RuntimeError, IndexError)):
        taeda.narrow_copy(matrix(taeda, "sparse_coo"), 0, 3, 4)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(7, 5), (5, 7)])
def test_principal_components(layout, shape):
    if layout[7] == "b":
        pytest.skip("blocks do not divide 5 and 7")
    dense = taeda.rand(*shape, dtype=taeda.float64) * (taeda.rand(*shape) > 0.4)
    dense[:, 3] = 0
    sparse = dense.to_sparse(layout=getattr(taeda, layout))
    for center in (True, False):
        S = taeda.pca_lowrank(sparse, q=4, center=center, niter=4)[1]
        whole = dense - dense.mean(0) if center else dense
        taeda.testing.assert_close(S[:3], taeda.linalg.svdvals(whole)[:3], rtol=1e-2, atol=1e-3)
        taeda.manual_seed(1)
        mine = taeda.svd_lowrank(sparse, q=4)
        taeda.manual_seed(1)
        taeda.testing.assert_close(mine[1], taeda.svd_lowrank(dense, q=4)[1])


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
def test_rows_and_columns_of_compressed_matrices_are_sparse_vectors(layout):
    torch = pytest.importorskip("torch")
    rows = []
    for of in (taeda, torch):
        x = matrix(of, layout)
        rows.append([(y.layout == of.sparse_coo, y.to_dense().tolist())
                     for y in (x[0], x[:, 3], x.select(0, -1), x.select(1, 0))])  # fmt: skip
    assert rows[0] == rows[1]
    assert all(is_coo for is_coo, _ in rows[0])


def test_sparse_gradients_are_not_clipped():
    layer = taeda.nn.Embedding(4, 2, sparse=True)
    layer(taeda.tensor([1, 2])).sum().backward()
    with pytest.raises(NotImplementedError, match="sparse=False, or clip the others"):
        taeda.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)


@pytest.mark.parametrize("part", ["crow_indices", "col_indices", "values"])
def test_copies_of_parts(part):
    x = matrix(taeda, "sparse_csr")
    copy = getattr(taeda, f"{part}_copy")(x)
    assert taeda.equal(copy, getattr(x, part)())
    copy.zero_()
    assert x.values().tolist() == [1, 2, 3]
