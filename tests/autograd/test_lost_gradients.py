"""Operators without a derivative say so in backward instead of losing the gradient."""

import pytest

import taeda

OPERATORS = {
    "unique": lambda t, x: t.unique(x),
    "unsorted unique": lambda t, x: t.unique(x, sorted=False, return_counts=True)[0],
    "unique rows": lambda t, x: t.unique(x.reshape(2, 2), dim=0, return_inverse=True)[0],
    "unique_consecutive": lambda t, x: t.unique_consecutive(x),
    "unique_consecutive rows": lambda t, x: t.unique_consecutive(x.reshape(2, 2), dim=0),
    "bincount": lambda t, x: t.bincount(t.tensor([0, 1, 1, 3]), weights=x),
    "histogram": lambda t, x: t.histogram(x.detach(), 3, weight=x)[0],
    "histogramdd": lambda t, x: t.histogramdd(x.reshape(4, 1), (3,))[0],
    "binomial": lambda t, x: t.binomial(t.ones(4), x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_backward_raises(name):
    torch = pytest.importorskip("torch")
    errors = []
    for t in (taeda, torch):
        x = t.tensor([0.25, 0.5, 0.5, 1.0], requires_grad=True)
        y = OPERATORS[name](t, x)
        assert y.requires_grad and not OPERATORS[name](t, x.detach()).requires_grad
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            y.sum().backward()
        errors.append(str(error.value))
        assert x.grad is None
    assert "is not implemented" in errors[0] and "is not implemented" in errors[1]


def test_counts_and_inverses_need_no_gradient(both):
    def program(t):
        x = t.tensor([1.0, 0.5, 1.0], requires_grad=True)
        _, inverse, counts = t.unique(x, return_inverse=True, return_counts=True)
        return inverse, counts, t.bincount(t.tensor([0, 2, 2]))

    both(program)


def test_an_inference_tensor_is_no_out_outside_of_its_mode(both):
    def program(t, requires_grad=False):
        x = t.ones(3, requires_grad=requires_grad)
        with t.inference_mode():
            out = t.zeros(3)
        return t.mul(x, x, out=out)

    both(program, "Inplace update to inference tensor outside InferenceMode is not allowed")
    both(
        lambda t: program(t, requires_grad=True),
        "out=... arguments don't support automatic differentiation, but one of the arguments",
    )


def test_an_inference_tensor_is_an_out_in_its_mode(both):
    def program(t):
        with t.inference_mode():
            return t.mul(t.ones(3), 2, out=t.zeros(3))

    both(program)


@pytest.mark.parametrize("split", ["unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"])
def test_unsafe_parts_count_their_writes_each_for_itself(both, split):
    size = {"unsafe_split": 1, "unsafe_chunk": 3, "unsafe_split_with_sizes": (1, 1, 1)}[split]

    def program(t):
        x = t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        first, second, _ = getattr(x * 2, split)(size)
        first.mul_(second)
        (g,) = t.autograd.grad(first.sum(), x)
        return g, first._version, second._version

    both(program)


def test_data_of_another_kind_is_refused(both):
    def program(t):
        x = t.ones(2, 2)
        x.data = t.ones(2, 2).to_sparse()

    both(program, "have incompatible tensor type")


def test_as_strided_stays_inside_of_a_sample():
    """A sample of a batch has no memory but its own, although its neighbours lie right behind."""
    x = taeda.arange(12.0).reshape(3, 4)
    inside = taeda.vmap(lambda row: row.as_strided((2,), (2,), 0))(x)
    assert inside.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        taeda.vmap(lambda row: row.as_strided((5,), (1,), 0))(x[:2])
