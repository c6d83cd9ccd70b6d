"""Results and gradients that were once wrong without an error."""

from __future__ import annotations

import pytest

import taeda as torch


def test_missing_second_gradients_raise_on_the_way_to_an_input():
    x = torch.tensor([0.3, 0.6], dtype=torch.float64, requires_grad=True)
    values = torch.tensor([1.0, 1.0], dtype=torch.float64)
    y = torch.heaviside(x, values) + x
    with pytest.raises(RuntimeError, match="derivative for heaviside is not implemented"):
        torch.autograd.grad(y.sum(), x)
    # Another branch of the graph does not matter.
    other = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((torch.heaviside(x, values) + other).sum(), other)
    assert g.tolist() == [1.0, 1.0]


def test_overwritten_values_lose_their_old_history():
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y.heaviside_(torch.ones(3))
    with pytest.raises(RuntimeError, match="is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize("n", [1, 100])
def test_numbers_beyond_a_small_integer_type_wrap_as_tensors_do(n):
    u = torch.full((n,), 200, dtype=torch.uint8)
    assert (u * 300)[0].item() == 96
    assert (u + 300)[0].item() == 244
    assert (u < 300)[0].item() is False  # 300 counts as 44
    assert (u == -1)[0].item() is False
    with pytest.raises(RuntimeError, match="without overflow"):
        u.clamp(max=300)
    assert u.clamp(max=100)[0].item() == 100


def test_max_takes_an_integer_scalar_tensor_as_the_other():
    x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    assert torch.max(x, torch.tensor(1)).tolist() == [[1.0, 2.0], [3.0, 1.0]]
    assert torch.min(x, torch.tensor(1)).tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert torch.max(x, 1).indices.tolist() == [1, 0]


def test_cat_skips_the_empty_vector_for_every_dim():
    x = torch.ones(2, 3, requires_grad=True)
    for dim in (0, 1, -1):
        y = torch.cat([torch.empty(0), x], dim=dim)
        assert y.shape == (2, 3)
    torch.cat([torch.empty(0), x, x], dim=-1).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    with pytest.raises(IndexError):
        torch.cat([torch.empty(0), x], dim=2)


def test_atan2_at_the_origin_has_gradient_zero():
    y, x = torch.zeros(2, requires_grad=True), torch.tensor([0.0, 1.0], requires_grad=True)
    torch.atan2(y, x).sum().backward()
    assert y.grad.tolist() == [0.0, 1.0]
    assert x.grad.tolist() == [0.0, 0.0]
