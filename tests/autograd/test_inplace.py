# ruff: noqa: E501
"""In-place operators, views and version counters, against PyTorch."""

import pytest

import taeda


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def chain_of_writes(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x.clone()
    y.mul_(2).add_(x).sigmoid_()
    y.sum().backward()
    return y, x.grad


@program
def write_into_view(t):
    x, w = leaf(t, 1.0, 2.0, 3.0), leaf(t, 10.0)
    y = x * 1
    y[1:2].mul_(w)
    (y * y).sum().backward()
    return y, x.grad, w.grad


@program
def view_follows_base(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    y.mul_(3)
    v.sum().backward()
    return v, x.grad, v.grad_fn.name()


@program
def sibling_views(t):
    base, w = t.zeros(4, dtype=t.float64), leaf(t, 5.0)
    a, b = base[:2], base[1:3]
    a.add_(w)
    out = b.requires_grad, base.requires_grad, b.is_leaf
    (b * b).sum().backward()
    return out, w.grad


@program
def view_of_a_view(t):
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    y = (x * 1).view(2, 2)
    v = y.t()[0]
    v.exp_()
    y.sum().backward()
    return y, x.grad


@program
def indexed_assignment(t):
    x, w = leaf(t, 1.0, 2.0, 3.0), leaf(t, 7.0)
    y = x * 2
    y[0] = w[0]
    y[1:] = y[1:] * w
    (y * y).sum().backward()
    return y, x.grad, w.grad


@program
def overwriting_with_a_constant(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 2
    y[:2] = 0
    y.sum().backward()
    return x.grad


@program
def filling_and_copying(t):
    x, s = leaf(t, 1.0, 2.0), leaf(t, 3.0)
    y = x * 1
    y.copy_(s.expand(2))
    z = x * 1
    z.zero_()
    (y + z + x).sum().backward()
    return x.grad, s.grad


@program
def non_leaf_buffer_becomes_part_of_the_graph(t):
    buffer, w = t.zeros(3, dtype=t.float64), leaf(t, 2.0)
    buffer += w * 3
    out = buffer.requires_grad, buffer.is_leaf
    buffer.sum().backward()
    return out, w.grad


@program
def retain_grad_of_a_view_and_its_base_when_the_view_is_written(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 2
    v = y[:2]
    y.retain_grad()
    v.retain_grad()
    v.mul_(3)
    (y.sum() * 2 + v.sum()).backward()
    return y.grad, v.grad, x.grad


@program
def retain_grad_of_a_view_when_its_base_is_written(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 2
    v = y.view(3, 1)
    v.retain_grad()
    y.retain_grad()
    y.mul_(3)
    (v * v).sum().backward()
    return v.grad, y.grad, x.grad


@program
def hooks_of_a_view_stay_with_its_value_as_it_was(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    v, seen = y[:1], []
    v.register_hook(lambda g: seen.append(("before", g.tolist())))
    v.retain_grad()
    y.mul_(3)
    (v * v).sum().backward()
    return v.grad, x.grad, seen


@program
def detach_shares_memory_and_versions(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    d = y.detach()
    before = y._version
    d.add_(1)
    return before, y._version, d.requires_grad, y


@program
def data_shares_memory_only(t):
    x = leaf(t, 1.0, 2.0)
    y = (x * x).sum()
    x.data.mul_(2)
    y.backward()
    return x._version, x.grad


@program
def setting_data(t):
    x = leaf(t, 1.0, 2.0)
    x.data = t.tensor([3.0, 4.0, 5.0], dtype=t.float64)
    (x * x).sum().backward()
    return x, x.grad


@program
def no_grad_update(t):
    x = leaf(t, 1.0, 2.0)
    (x * x).sum().backward()
    with t.no_grad():
        x -= 0.1 * x.grad
    return x, x.is_leaf, x._version


@program
def write_after_use_that_is_not_saved(t):
    x = leaf(t, 1.0, 2.0)
    h = x * 1
    y = h + 1
    h.add_(5)
    (y + h).sum().backward()
    return x.grad


@program
def second_derivative_through_an_inplace_view(t):
    x = leaf(t, 0.5, 1.0)
    y = x * 1
    y[:1].exp_()
    (g,) = t.autograd.grad((y * y).sum(), x, create_graph=True)
    (gg,) = t.autograd.grad(g.sum(), x)
    return g, gg


@program
def layout_changed_in_place(t):
    x = t.arange(6.0, dtype=t.float64).view(2, 3).clone().requires_grad_()
    y = x * 2
    y.t_().unsqueeze_(0)
    (y * y).sum().backward()
    return y, x.grad


def changed_view(t, change):
    x = t.arange(6.0, dtype=t.float64).view(1, 2, 3).clone().requires_grad_()
    y = x * 1
    v, other = y.view(1, 2, 3), y.view(6)
    change(v)
    before = v.is_leaf, v.shape, v.stride()
    (only,) = t.autograd.grad((v * v).sum(), x, retain_graph=True)
    v.mul_(t.arange(1.0, v.numel() + 1, dtype=t.float64).view(v.shape))
    ((y * y).sum() + (other**3).sum()).backward()
    return before, only, v, y, x.grad


@program
def layout_of_a_view_changed_in_place(t):
    changes = [
        lambda v: v.transpose_(1, 2),
        lambda v: v.squeeze_(),
        lambda v: v.squeeze_(0).t_(),
        lambda v: v.unsqueeze_(-1),
        lambda v: v.swapaxes_(0, 2).swapdims_(1, 2),
        lambda v: v.as_strided_((2, 2), (3, 1), 1),
    ]
    return [changed_view(t, change) for change in changes]


@program
def layout_of_a_saved_view_changed_in_place(t):
    y = leaf(t, 1.0, 2.0).view(1, 2) * 1
    v = y.view(2, 1)
    s = (v * v).sum()
    v.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.backward()


@program
def layout_of_a_view_changed_without_grad(t):
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    v = (x * 1).view(2, 2)
    with t.no_grad():
        v.t_()
    (v * t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=t.float64)).sum().backward()
    return v, x.grad


@program
def layout_of_one_of_several_views(t):
    (leaf(t, 1.0, 2.0) * 1).unbind()[0].unsqueeze_(0)


@program
def layout_of_a_view_of_a_leaf(t):
    leaf(t, 1.0, 2.0).view(1, 2).t_()


@program
def layout_of_a_no_grad_view(t):
    y = leaf(t, 1.0, 2.0) * 1
    with t.no_grad():
        v = y.view(1, 2)
    v.t_()


@program
def size_of_a_view_changed_in_place(t):
    (leaf(t, 1.0, 2.0) * 1).view(1, 2).resize_(2)


@program
def complex_part_views(t):
    z = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128, requires_grad=True)
    y = z * 1
    t.view_as_real(y)[..., 1].mul_(3)
    (y.abs() ** 2).sum().backward()
    return y, z.grad


# --- errors ---


@program
def write_to_a_leaf(t):
    leaf(t, 1.0).add_(1)


@program
def write_to_a_view_of_a_leaf(t):
    leaf(t, 1.0).view(-1).add_(1)


@program
def write_to_a_no_grad_view(t):
    y = leaf(t, 1.0, 2.0) * 1
    with t.no_grad():
        v = y.view(-1)
    v.mul_(2)


@program
def write_to_an_inference_tensor(t):
    with t.inference_mode():
        x = t.ones(2)
    x.add_(1)


@program
def save_an_inference_tensor(t):
    with t.inference_mode():
        i = t.ones(1, dtype=t.float64)
    return leaf(t, 1.0) * i


@program
def inference_tensors_may_be_used_unsaved(t):
    with t.inference_mode():
        i = t.ones(1, dtype=t.float64)
    y = leaf(t, 1.0) + i
    return i.is_inference(), y.is_inference(), y.requires_grad


@program
def requires_grad_of_an_inference_tensor(t):
    with t.inference_mode():
        i = t.ones(1)
    i.requires_grad_()


@program
def detach_a_view_in_place(t):
    (leaf(t, 1.0) * 1).view(-1).detach_()


@program
def write_to_an_expanded_tensor(t):
    (leaf(t, 1.0) * 1).expand(3).mul_(2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(both, name):
    both(PROGRAMS[name])


SAVED = {
    "input of mul": (lambda t, h: h * h, "mul"),
    "result of exp": (lambda t, h: h.exp(), "result"),
    "input of sin": (lambda t, h: h.sin(), "sin"),
    "result of tanh": (lambda t, h: h.tanh(), "result"),
    "input of log": (lambda t, h: (h + 5).log(), None),
    "input of matmul": (lambda t, h: h.view(1, -1) @ h.view(-1, 1), "mul"),
    "result of softmax": (lambda t, h: h.softmax(0), "result"),
    "input of pow": (lambda t, h: h**3, "pow"),
    "result of relu": (lambda t, h: h.relu(), "result"),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_tensor_that_was_changed_raises(both, name):
    function, what = SAVED[name]

    def program(t):
        x = leaf(t, 1.0, 2.0, 3.0)
        h = x * 1
        y = function(t, h)
        (y if what == "result" else h).add_(1)
        return t.autograd.grad(y.sum(), x)

    if what is None:  # the operator's input is a temporary: nothing was changed
        both(program)
    else:
        result = both(
            program,
            part="one of the variables needed for gradient computation has been modified by an inplace operation",
        )
        assert "expected version 0 instead" in result[2]


def test_version_message():
    x = taeda.ones(3, requires_grad=True)
    h = x * 2
    y = h * h
    h.add_(1)
    with pytest.raises(RuntimeError) as info:
        y.sum().backward()
    text = str(info.value)
    assert "[torch.FloatTensor [3]], which is output 0 of Mul" in text
    assert "is at version 1; expected version 0 instead" in text
    assert "MulBackward0" in info.value.__notes__[-1]  # who needs it


def test_data_may_be_the_tensor_itself():
    x = taeda.ones(3, requires_grad=True)
    x.data = x
    assert x.tolist() == [1, 1, 1] and x.requires_grad


SEVERAL = {
    "unbind": lambda x: x.unbind(),
    "iteration": list,
    "split": lambda x: x.split(2),
    "split_sizes": lambda x: x.split([1, 3]),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3]),
    "chunk": lambda x: x.chunk(2),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_one_of_several_views_may_not_be_written(name):
    several = SEVERAL[name]
    x = leaf(taeda, 1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    with pytest.raises(RuntimeError, match=r"Output 0 of .* function that returns multiple views"):
        several(y)[0].mul_(2)
    with pytest.raises(RuntimeError, match="multiple views"):
        several(taeda.ones(4, dtype=taeda.float64))[1].mul_(x[0])
    # a base that was written takes its views along, except these
    part = several(y)[1]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="base or another view of its base has been modified"):
        part.sum().backward()
    # without gradients they are views like all others
    with taeda.no_grad():
        several(y)[0].zero_()
    assert y[0] == 0
    plain = taeda.ones(4)
    several(plain)[0].mul_(2)
    assert plain[0] == 2


@pytest.mark.parametrize("name", SEVERAL)
def test_gradients_of_several_views(name):
    several = SEVERAL[name]
    x = leaf(taeda, 1.0, 2.0, 3.0, 4.0)
    several(x)[-1].sum().backward()
    expected = taeda.zeros(4, dtype=taeda.float64)
    several(expected)[-1].fill_(1)
    assert x.grad.tolist() == expected.tolist()

    def function(x):
        parts = several(x)
        return (parts[0] ** 3).sum() * parts[-1]

    taeda.autograd.gradcheck(function, (x,), check_forward_ad=True)
    taeda.autograd.gradgradcheck(function, (x,))


WRITES = {
    "element": lambda t, base, x: x[0].fill_(1.0),
    "itself": lambda t, base, x: x.mul_(2),
    "its view": lambda t, base, x: x[1:].add_(1),
    "its base, by a leaf": lambda t, base, x: base.mul_(leaf(t, 2.0)),
    "a view of its base, by a leaf": lambda t, base, x: base[1:].mul_(leaf(t, 2.0)),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_leaf_that_is_a_view(both, name):
    """Writing into it raises, for its history is its own: the base has none."""

    def program(t):
        base = t.linspace(-1, 1, 4, dtype=t.float64)
        x = base.view(2, 2).requires_grad_()
        WRITES[name](t, base, x)
        return x, base, x.is_leaf, base.requires_grad

    both(program)


def test_a_view_given_a_layout_that_reaches_beyond_it_has_its_bases_gradient():
    """PyTorch drops what lies outside of the view as it was."""
    x = leaf(taeda, 1.0, 2.0, 3.0)
    v = (x * 1)[1:]
    v.as_strided_((3,), (1,), 0)
    (v * leaf(taeda, 1.0, 10.0, 100.0).detach()).sum().backward()
    assert x.grad.tolist() == [1, 10, 100]


def test_a_complex_tensors_part_changes_its_layout():
    """PyTorch's backward of this raises."""
    z = taeda.tensor([[1 + 2j, 3 - 1j]], dtype=taeda.complex128, requires_grad=True)
    y = z * 1
    y.imag.t_().mul_(taeda.tensor([[3.0], [2.0]], dtype=taeda.float64))
    (y.abs() ** 2).sum().backward()
    assert z.grad.tolist() == [[2 + 36j, 6 - 8j]]
