"""Strides of results that are not row-major: those of PyTorch, whose libraries leave them so."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")


def pair(*shape, dtype="float64", layout="dense"):
    theirs = torch.randn(*shape, dtype=getattr(torch, dtype), generator=torch.manual_seed(0))
    ours = taeda.from_numpy(theirs.numpy().copy())
    if layout == "transposed":
        return ours.permute(2, 0, 1), theirs.permute(2, 0, 1)
    if layout == "sliced":
        return ours[:, 1:, ::2], theirs[:, 1:, ::2]
    return ours, theirs


def assert_same_layout(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    near = torch.from_dlpack(ours.detach().contiguous().resolve_conj())
    assert torch.allclose(near, theirs.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("layout", ["dense", "transposed", "sliced"])
@pytest.mark.parametrize("dim", [(0,), (1,), (-1,), (0, 1), (2, 0), (1, 2), (0, 1, 2)])
def test_transforms_lay_their_dimensions_innermost(dim, layout):
    real, theirs_real = pair(5, 4, 7, layout=layout)
    complex_, theirs_complex = pair(5, 4, 7, dtype="complex128", layout=layout)
    for name in ("fftn", "ifftn", "irfftn", "hfftn"):
        ours = getattr(taeda.fft, name)(complex_, dim=dim)
        assert_same_layout(ours, getattr(torch.fft, name)(theirs_complex, dim=dim))
    for name in ("fftn", "ifftn", "rfftn", "ihfftn"):
        ours = getattr(taeda.fft, name)(real, dim=dim)
        assert_same_layout(ours, getattr(torch.fft, name)(theirs_real, dim=dim))


def test_a_resized_out_of_a_factorization_is_column_major():
    ours, theirs = pair(2, 3, 3)
    for name in ("inv_ex", "qr", "lu_factor_ex", "ldl_factor", "eigh", "eig", "cholesky_ex"):
        results = []
        for lib, x in ((taeda, ours), (torch, theirs)):
            x = x @ x.mT if name in ("cholesky_ex", "eigh") else x
            function = getattr(lib.linalg, name)
            outs = [lib.zeros(1, dtype=made.dtype) for made in function(x)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(x, out=tuple(outs))
            results.append([tuple(out.stride()) for out in outs])
        assert results[0] == results[1], name


def test_a_resized_out_of_a_transform_is_row_major():
    ours, theirs = pair(4, 3, 5)
    outs = taeda.zeros(0, dtype=taeda.complex128), torch.zeros(0, dtype=torch.complex128)
    taeda.fft.fft(ours, dim=0, out=outs[0])
    torch.fft.fft(theirs, dim=0, out=outs[1])
    assert_same_layout(*outs)


@pytest.mark.parametrize("shapes", [((3, 3), (3, 3)), ((4, 3), (4, 2)), ((3, 4), (3, 2))])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_least_squares_leave_columns(shapes, batch):
    a, theirs_a = pair(*batch, *shapes[0])
    b, theirs_b = pair(*batch, *shapes[1])
    ours = taeda.linalg.lstsq(a, b).solution
    assert_same_layout(ours, torch.linalg.lstsq(theirs_a, theirs_b).solution)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions_of_factored_systems(left, adjoint, dtype):
    a, theirs_a = pair(3, 3, dtype=dtype)
    b, theirs_b = pair(*((2, 3, 4) if left else (2, 4, 3)), dtype=dtype)
    options = {"left": left, "adjoint": adjoint}
    ours = taeda.linalg.lu_solve(*taeda.linalg.lu_factor(a), b, **options)
    theirs = torch.linalg.lu_solve(*torch.linalg.lu_factor(theirs_a), theirs_b, **options)
    assert_same_layout(ours, theirs)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.filterwarnings("ignore:torch.triangular_solve")
def test_both_results_of_triangular_solve_are_column_major(transpose):
    a, theirs_a = pair(3, 3)
    b, theirs_b = pair(3, 2)
    ours = taeda.triangular_solve(b, a, transpose=transpose)
    theirs = torch.triangular_solve(theirs_b, theirs_a, transpose=transpose)
    for one, other in zip(ours, theirs, strict=True):
        assert_same_layout(one, other)


def test_finite_differences_are_row_major():
    ours, theirs = pair(4, 5)
    for one, other in zip(taeda.gradient(ours), torch.gradient(theirs), strict=True):
        assert_same_layout(one, other)
