"""Second derivatives against finite differences and closed forms in double precision."""

import numpy as np
import pytest

import taeda as torch
from taeda.autograd import forward_ad, gradcheck, gradgradcheck


def sampled(dims, mode, padding, align):
    """Images and positions away from the lines between pixels, where derivatives jump."""
    generator = np.random.default_rng(0)
    sizes = (4, 5, 3)[:dims]
    image = torch.tensor(generator.standard_normal((2, 2, *sizes)), requires_grad=True)
    grid = torch.tensor(generator.uniform(-1.4, 1.4, (2, *(3, 2, 2)[:dims], dims)))

    def call(x, at):
        return torch.nn.functional.grid_sample(x, at, mode, padding, align_corners=align)

    return call, (image, grid.requires_grad_())


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode, dims", [("bilinear", 2), ("bicubic", 2), ("nearest", 2)])
def test_grid_sample_has_second_derivatives_and_forward_mode(mode, dims, padding, align):
    call, args = sampled(dims, mode, padding, align)
    assert gradcheck(call, args, check_forward_ad=True)
    assert gradgradcheck(call, args)


def test_grid_sample_of_volumes_has_second_derivatives():
    call, args = sampled(3, "bilinear", "reflection", False)
    assert gradcheck(call, args, check_forward_ad=True)
    assert gradgradcheck(call, args)


@pytest.mark.parametrize("exponent", [1 / 6, -5 / 6, 2.3])
def test_second_derivatives_of_powers_are_as_exact_as_their_dtype(exponent):
    x = torch.tensor([0.3, 1.7, 4.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad((x**exponent).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    expected = exponent * (exponent - 1) * x.detach().numpy() ** (exponent - 2)
    np.testing.assert_allclose(second.numpy(), expected, rtol=1e-14)


def test_second_derivative_of_sinc_is_finite_in_half_precision():
    x = torch.tensor([0.05, 3.0, 9.0], dtype=torch.float16, requires_grad=True)
    (first,) = torch.autograd.grad(torch.sinc(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    t = np.pi * x.detach().double().numpy()
    expected = np.pi**2 * (2 * np.sin(t) / t**3 - 2 * np.cos(t) / t**2 - np.sin(t) / t)
    np.testing.assert_allclose(second.double().numpy(), expected, atol=0.02)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_pinv_of_a_hermitian_matrix_reads_its_lower_triangle(dtype):
    generator = np.random.default_rng(1)
    matrix = generator.standard_normal((4, 4)) + 1j * generator.standard_normal((4, 4))
    matrix = matrix if dtype == torch.complex128 else matrix.real
    lower = np.tril(matrix, -1)
    hermitian = lower + lower.conj().T + np.diag(np.diag(matrix).real)
    found = torch.linalg.pinv(torch.tensor(matrix), hermitian=True)
    np.testing.assert_allclose(found.numpy(), np.linalg.pinv(hermitian), rtol=1e-9, atol=1e-12)


def test_pinv_of_a_hermitian_matrix_must_be_square():
    with pytest.raises(RuntimeError, match="square"):
        torch.linalg.pinv(torch.ones(2, 3), hermitian=True)


def test_forward_mode_of_grid_sample_is_that_of_positions():
    x = torch.arange(4.0, dtype=torch.float64).reshape(1, 1, 1, 4)
    grid = torch.tensor([[[[0.1, 0.0]]]], dtype=torch.float64)
    with forward_ad.dual_level():
        tangent = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
        y = torch.nn.functional.grid_sample(
            x, forward_ad.make_dual(grid, tangent), align_corners=True
        )
        assert forward_ad.unpack_dual(y).tangent.item() == pytest.approx(1.5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduce", [torch.scatter_reduce, torch.index_reduce])
def test_second_derivatives_of_products_cancel_in_half_precision(reduce, dtype):
    """A product of one number is that number, whose second derivative is 0."""
    generator = np.random.default_rng(3)
    y = torch.tensor(generator.uniform(1, 9, 64)).to(dtype).requires_grad_()
    index = torch.arange(64)
    product = reduce(torch.zeros(64, dtype=dtype), 0, index, y, "prod", include_self=False)
    weights = torch.tensor(generator.uniform(1, 9, 64)).to(dtype)
    (first,) = torch.autograd.grad(product, y, weights, create_graph=True)
    (second,) = torch.autograd.grad((first * weights).sum(), y)
    assert second.abs().max().item() < 1e-3
