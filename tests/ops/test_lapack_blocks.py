"""LU factors and triangular systems of sizes around the blocks that they are computed by: NumPy."""

import numpy as np
import pytest

import taeda as torch

DTYPES = {
    torch.float32: 1e-5,
    torch.float64: 1e-13,
    torch.complex64: 1e-5,
    torch.complex128: 1e-13,
}
SIZES = (1, 7, 16, 17, 32, 33, 48, 65, 130)


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


def matrix(rows, columns, dtype, by_columns):
    x = torch.randn(rows, columns, dtype=dtype)
    return x.mT.contiguous().mT if by_columns else x


def relative_error(found, wanted):
    return np.abs(found.numpy() - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("by_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("columns", [*SIZES, 300])
@pytest.mark.parametrize("rows", [5, 33, 130])
def test_factors_multiply_to_the_matrix_and_pivots_are_largest(dtype, rows, columns, by_columns):
    a = matrix(rows, columns, dtype, by_columns)
    p, lower, upper = (t.numpy() for t in torch.linalg.lu(a))
    assert relative_error(a, p @ lower @ upper) < 10 * DTYPES[dtype]
    below = np.tril(lower, -1)
    assert (np.abs(below.real) + np.abs(below.imag)).max(initial=0) < 2.01


@pytest.mark.parametrize("by_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("n", SIZES)
def test_inverses_and_solutions_are_numpys(dtype, n, by_columns):
    a = matrix(n, n, dtype, by_columns) + 3 * torch.eye(n, dtype=dtype)
    b, wide = matrix(n, 21, dtype, by_columns), a.numpy().astype(np.complex128)
    bound = np.linalg.cond(wide) * 10 * DTYPES[dtype]
    assert relative_error(torch.linalg.inv(a), np.linalg.inv(wide)) < bound
    assert relative_error(torch.linalg.solve(a, b), np.linalg.solve(wide, b.numpy())) < bound


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_triangular_systems_do_not_read_the_other_triangle(dtype, n, left, upper):
    a = torch.randn(n, n, dtype=dtype) / n + 3 * torch.eye(n, dtype=dtype)
    half = (torch.triu if upper else torch.tril)(a).numpy()
    b = torch.randn(*((n, 19) if left else (19, n)), dtype=dtype)
    x = torch.linalg.solve_triangular(a, b, upper=upper, left=left).numpy()
    assert relative_error(b, half @ x if left else x @ half) < 20 * DTYPES[dtype]


def test_the_first_zero_pivot_of_a_later_block_is_named():
    a = torch.eye(70)
    a[50, 50] = a[60, 60] = 0
    assert torch.linalg.lu_factor_ex(a).info == 51
    with pytest.raises(torch.linalg.LinAlgError, match="51"):
        torch.linalg.inv(a)


def test_one_and_two_threads_give_the_same_bits():
    a = torch.randn(300, 300)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(torch.linalg.inv(a))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
