"""Matrix products: messages, layouts, aliasing of threads; values over dtypes are the grid's."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
from taeda import nn


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def ours(a: np.ndarray, dtype: object = taeda.float64) -> taeda.Tensor:
    return taeda.tensor(a.tolist(), dtype=dtype).reshape(a.shape)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((3,), (3, 4), "self must be a matrix"),
        ((3, 3), (4,), "mat2 must be a matrix"),
        ((2, 3), (4, 5), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
    ],
)
def test_mm_rejects(a: tuple, b: tuple, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        taeda.mm(taeda.ones(a), taeda.ones(b))


def test_dtypes_must_match() -> None:
    with pytest.raises(RuntimeError, match="same dtype"):
        taeda.mm(taeda.ones(2, 2), taeda.ones(2, 2, dtype=taeda.float64))
    with pytest.raises(RuntimeError, match=r"Bool|bool"):
        taeda.mm(taeda.ones(2, 2, dtype=taeda.bool), taeda.ones(2, 2, dtype=taeda.bool))


def test_matmul_rejects_scalars_and_mismatches() -> None:
    with pytest.raises(RuntimeError, match="at least 1D"):
        taeda.ones(()) @ taeda.ones(3)
    with pytest.raises(RuntimeError):
        taeda.ones(2, 3, 4) @ taeda.ones(3, 4, 5)
    with pytest.raises(RuntimeError, match="size mismatch"):
        taeda.ones(2, 3) @ taeda.ones(4)


def test_linear_rejects() -> None:
    with pytest.raises(RuntimeError, match=r"\(2x3 and 4x5\)"):
        nn.functional.linear(taeda.ones(2, 3), taeda.ones(5, 4))
    with pytest.raises(RuntimeError):
        nn.functional.linear(taeda.ones(2, 3), taeda.ones(5, 3), taeda.ones(4))


def test_products_of_strided_views() -> None:
    """Transposed, sliced, expanded and overlapping operands give what their copies give."""
    base = array(8, 8)
    x = ours(base)
    views = {
        "transposed": (x.t(), base.T),
        "sliced": (x[:, ::2], base[:, ::2]),
        "expanded": (x[:1].expand(8, 8), np.repeat(base[:1], 8, 0)),
        "windows": (
            x.reshape(-1).unfold(0, 8, 1)[:8],
            np.lib.stride_tricks.sliding_window_view(base.reshape(-1), 8)[:8],
        ),
    }
    for name, (view, plain) in views.items():
        np.testing.assert_allclose((view.t() @ x).numpy(), plain.T @ base, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(
            (x[: view.shape[1]].t() @ view.t()).numpy(),
            base[: view.shape[1]].T @ plain.T,
            rtol=1e-12,
            err_msg=name,
        )


def test_beta_zero_ignores_self() -> None:
    nan = taeda.full((2, 2), float("nan"))
    assert taeda.addmm(nan, taeda.ones(2, 3), taeda.ones(3, 2), beta=0).tolist() == [
        [3.0, 3.0],
        [3.0, 3.0],
    ]


def test_empty_inner_dimension() -> None:
    assert (taeda.ones(2, 0) @ taeda.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert (
        taeda.addmm(taeda.ones(3), taeda.ones(2, 0), taeda.ones(0, 3)).tolist() == [[1.0] * 3] * 2
    )


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("...i,i", [(2, 3), (3,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ab,cd,ac->bd", [(2, 3), (4, 5), (2, 4)]),
        ("ijk,ijk->k", [(2, 3, 4), (2, 3, 4)]),
        ("a b , b -> a", [(2, 3), (3,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple]) -> None:
    arrays = [array(*s, seed=i) for i, s in enumerate(shapes)]
    got = taeda.einsum(equation, *[ours(a) for a in arrays])
    np.testing.assert_allclose(
        got.numpy(), np.einsum(equation.replace(" ", ""), *arrays), rtol=1e-12, atol=1e-12
    )
    inputs = [ours(a).requires_grad_() for a in arrays]
    if sum(a.size for a in arrays) <= 60:
        assert taeda.autograd.gradcheck(lambda *t: taeda.einsum(equation, *t), inputs)


@pytest.mark.parametrize(
    "equation", ["ij,jk->iz", "ij->ii", "ijk,jk", "i.j,jk", "ij", "ij,jk,kl", "i1,jk"]
)
def test_einsum_rejects(equation: str) -> None:
    with pytest.raises(RuntimeError, match="einsum"):
        taeda.einsum(equation, taeda.ones(2, 3), taeda.ones(3, 4))


@pytest.mark.parametrize(
    "subscripts",
    [
        ([0, 1], [1, 2], [0, 2]),
        ([0, 1], [1, 2]),
        ([51, 26], [26, 25], [25, 51]),
        ([..., 1], [1, 2], [..., 2]),
        ((0, 1), (1, 2), ()),
    ],
)
def test_einsum_takes_dimensions_as_lists_of_numbers(subscripts: tuple) -> None:
    a, b = array(2, 3), array(3, 4, seed=1)
    wanted = np.einsum(a, list(subscripts[0]), b, *map(list, subscripts[1:]))
    got = taeda.einsum(ours(a), subscripts[0], ours(b), *subscripts[1:])
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (lambda x: (x, [0, 52]), ValueError),
        (lambda x: (x, [0, -1], [0]), ValueError),
        (lambda x: (x, ["i", 1]), TypeError),
        (lambda x: (x,), ValueError),
        (lambda x: ("ij",), ValueError),
        (lambda x: (3, x), TypeError),
    ],
)
def test_einsum_rejects_what_pytorch_rejects(arguments: object, error: type) -> None:
    with pytest.raises(error):
        taeda.einsum(*arguments(taeda.ones(2, 3)))


def test_same_bits_for_any_number_of_threads() -> None:
    a, b = taeda.tensor(array(300, 200).tolist()), taeda.tensor(array(200, 310).tolist())
    before = taeda.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            taeda.set_num_threads(threads)
            results.append((a @ b, taeda.dot(a.reshape(-1), a.reshape(-1))))
    finally:
        taeda.set_num_threads(before)
    for product, square in results[1:]:
        assert taeda.equal(product, results[0][0])
        assert taeda.equal(square, results[0][1])


@pytest.mark.parametrize("dims", [0, 1, 2, ([0, 1], [1, 0]), ([-1], [0]), (1, 0)])
def test_tensordot(dims: object) -> None:
    shapes = {1: ((2, 3), (3, 4)), 2: ((4, 2, 3), (2, 3, 5)), 0: ((2,), (3,))}
    a_shape, b_shape = shapes[dims] if isinstance(dims, int) else ((2, 3), (3, 2))
    a, b = array(*a_shape, seed=1), array(*b_shape, seed=2)
    got = taeda.tensordot(ours(a), ours(b), dims=dims)
    np.testing.assert_allclose(got.numpy(), np.tensordot(a, b, axes=dims), rtol=1e-12, atol=1e-12)


def test_chain_of_matrices() -> None:
    arrays = [array(*s, seed=i) for i, s in enumerate([(2, 30), (30, 3), (3, 20), (20, 4)])]
    want = np.linalg.multi_dot(arrays)
    np.testing.assert_allclose(
        taeda.chain_matmul(*[ours(a) for a in arrays]).numpy(), want, rtol=1e-12
    )
    np.testing.assert_allclose(
        taeda.linalg.multi_dot([ours(a) for a in arrays]).numpy(), want, rtol=1e-12
    )


def test_powers_and_empty_vectors() -> None:
    a = ours(array(3, 3))
    assert taeda.matrix_power(a, 0).tolist() == np.eye(3).tolist()
    assert taeda.dot(taeda.ones(0), taeda.ones(0)).item() == 0
    assert taeda.bmm(taeda.ones(0, 3, 4), taeda.ones(0, 4, 2)).shape == (0, 3, 2)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 2)), ((2, 3), (4,)), ((2, 1, 3), (2, 2))])
def test_kron(shapes: tuple) -> None:
    a, b = (array(*s, seed=i) for i, s in enumerate(shapes))
    for x, plain in (
        (ours(a), a),
        (ours(a).transpose(0, -1), a.T if a.ndim == 2 else np.swapaxes(a, 0, -1)),
    ):
        np.testing.assert_allclose(taeda.kron(x, ours(b)).numpy(), np.kron(plain, b), rtol=1e-12)


# (batch, rows, columns) of 20 x 48 x 64, as several memories hold it.
BATCHES = {
    "dense": lambda x: x,
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "interleaved": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "the same for all": lambda x: x[:1].expand(20, -1, -1),
    "every second column": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
}


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16, taeda.float32])
@pytest.mark.parametrize("left", BATCHES)
@pytest.mark.parametrize("right", BATCHES)
def test_batches_in_every_layout(left: str, right: str, dtype: taeda.dtype) -> None:
    taeda.manual_seed(1)
    x = BATCHES[left](taeda.randn(20, 48, 64).to(dtype))
    y = BATCHES[right](taeda.randn(20, 48, 64).to(dtype)).transpose(1, 2)
    z = taeda.bmm(x, y)
    assert z.dtype == dtype
    expected = np.matmul(x.double().numpy(), y.double().numpy())
    np.testing.assert_allclose(z.double().numpy(), expected, rtol=1e-2, atol=1e-1)
    special = x.clone()
    special[3, 5, 7], special[4, 6, 8] = float("nan"), float("inf")
    z = taeda.bmm(special, y).float()
    assert bool(z[3, 5].isnan().all())
    assert bool((z[4, 6].abs() == float("inf")).all())
    assert int(z.isfinite().sum()) == z.numel() - 2 * 48


@pytest.mark.parametrize("right", ["rows", "columns", "one row", "one column"])
@pytest.mark.parametrize("left", ["rows", "columns"])
def test_small_products_of_any_size(left: str, right: str) -> None:
    """Sizes around vectors, squares that turn in registers and the bounds of other algorithms."""
    taeda.manual_seed(2)
    sizes = [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 48]
    for m, n, k in [(m, n, k) for m in sizes for n in sizes for k in (1, 3, 16, 18, 40)]:
        x = taeda.randn(3, m, k) if left == "rows" else taeda.randn(3, k, m).transpose(1, 2)
        y = {
            "rows": lambda n=n, k=k: taeda.randn(3, k, n),
            "columns": lambda n=n, k=k: taeda.randn(3, n, k).transpose(1, 2),
            "one row": lambda n=n, k=k: taeda.randn(3, 1, n).expand(3, k, n),
            "one column": lambda n=n, k=k: taeda.randn(3, k, 1).expand(3, k, n),
        }[right]()
        want = x.double().numpy() @ y.double().numpy()
        for got in (taeda.bmm(x, y), taeda.stack([x[i] @ y[i] for i in range(3)])):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-4)
        z = taeda.randn(3, m, n)
        got = taeda.baddbmm(z, x, y, beta=0.5, alpha=2.0).numpy()
        np.testing.assert_allclose(got, 0.5 * z.numpy() + 2 * want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "strides", [(8, 32, 1), (1, 32, 1), (33, 1, 32), (0, 32, 1), (1024, 16, 1)]
)
def test_batches_of_bf16_that_overlap(strides):
    x = taeda.arange(5000).float().div(5000).bfloat16().as_strided((4, 32, 32), strides)
    y = taeda.randn(4, 32, 32).bfloat16()
    want = (x.float() @ y.float()).numpy()
    np.testing.assert_allclose(taeda.bmm(x, y).float().numpy(), want, rtol=1e-2, atol=1e-2)
    interleaved = taeda.randn(32, 4, 32).bfloat16().transpose(0, 1)  # heads of one sample
    want = (interleaved.float() @ y.float()).numpy()
    got = taeda.bmm(interleaved, y).float().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-1)


# Rows, sums and columns: several tiles of a result, the last ones smaller; many rows and few.
@pytest.mark.parametrize(
    "size", [(1100, 70, 1000), (1024, 33, 530), (40, 300, 2100), (600, 64, 513)]
)
@pytest.mark.parametrize("by_columns", [False, True])
def test_products_of_bf16_in_tiles(size, by_columns):
    m, k, n = size
    taeda.manual_seed(2)
    x, y, bias = (taeda.randn(*s).bfloat16() for s in ((m, k), (k, n), (n,)))
    if by_columns:
        y = y.t().contiguous().t()
    want = x.double().numpy() @ y.double().numpy()
    added = want + bias.double().numpy()
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            taeda.set_num_threads(threads)
            wide = taeda.zeros(m, n + 8).bfloat16()
            taeda.mm(x, y, out=wide[:, :n])
            assert not wide[:, n:].any()
            halved = taeda.addmm(bias, x, y, alpha=0.5, beta=2)
            results.append((wide[:, :n], taeda.addmm(bias, x, y), halved))
    finally:
        taeda.set_num_threads(before)
    for actual, expected in zip(
        results[0], (want, added, want / 2 + 2 * bias.double().numpy()), strict=True
    ):
        np.testing.assert_allclose(actual.double().numpy(), expected, rtol=8e-3, atol=5e-2)
    for a, b in zip(*results, strict=True):
        assert taeda.equal(a, b)


SHAPES = [
    ((3, 4, 4), (3, 4, 4)), ((2, 1, 4, 4), (3, 4, 2)), ((2, 3, 4), (4, 4)), ((4, 4), (2, 4, 4)),
    ((4,), (2, 3, 4, 4)), ((2, 3, 4), (4,)), ((4,), (4, 3)),
]  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_are_no_views(shapes: tuple[tuple[int, ...], ...], recorded: bool) -> None:
    a, b = (taeda.rand(shape) for shape in shapes)
    product = taeda.matmul(a.requires_grad_(recorded), b)
    assert not product._is_view() and product._base is None
    values = product.detach().clone()
    product.add_(1)
    np.testing.assert_allclose(product.detach().numpy(), values.numpy() + 1)
    if recorded:
        (gradient,) = taeda.autograd.grad(product.sum(), a)
        ones = np.ones(product.shape, "float32")
        expected = taeda.autograd.grad(taeda.matmul(a, b), a, taeda.from_numpy(ones))[0]
        np.testing.assert_allclose(gradient.numpy(), expected.numpy())
    assert not product.detach_().requires_grad


def test_copies_are_no_views() -> None:
    x = taeda.arange(6.0).reshape(2, 3)
    copies = [x.t().reshape(-1), x.repeat(2, 2), x.tile(2), x.roll(1), taeda.kron(x, x)]
    assert not any(copy._is_view() for copy in copies)
    assert x.reshape(3, 2)._is_view()


@pytest.mark.parametrize(
    "shapes", [((3,), (5, 3)), ((1, 3), (2, 5, 3)), ((3,), (3, 3)), ((2, 1, 3), (5, 3))]
)
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_vecdot_sums_along_a_dimension_of_both_together(shapes: tuple, dim: int) -> None:
    x, y = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate(shapes))
    want = (x * y).sum(dim)
    np.testing.assert_allclose(taeda.linalg.vecdot(taeda.tensor(x), taeda.tensor(y), dim=dim), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("step", [1, 3])
def test_dot_products(dtype: str, step: int) -> None:
    """Parts of vectors, several of them, blocks; gaps; vdot conjugates the first one."""
    random = np.random.default_rng(0)
    for n in (0, 1, 2, 5, 31, 64, 1000, 70_001):
        a, b = (random.integers(-3, 4, n * step + 1).astype(dtype) for _ in range(2))
        if dtype.startswith("complex"):
            a, b = a + 1j * b, b - 1j * a.real
        a, b = a.astype(dtype)[::step][:n], b.astype(dtype)[::step][:n]
        x, y = taeda.from_numpy(a.copy()), taeda.from_numpy(b.copy())
        if step > 1:
            x, y = (t.repeat_interleave(step)[::step] for t in (x, y))
        assert taeda.dot(x, y).item() == np.dot(a, b)
        assert taeda.vdot(x, y).item() == np.vdot(a, b)
