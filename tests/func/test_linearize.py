"""torch.func.linearize: a second tangent costs no evaluation of the function."""

import pytest

import taeda
from taeda.func import functionalize, grad, jacfwd, jacrev, jvp, linearize, vmap
from taeda.utils._python_dispatch import TorchDispatchMode

X = taeda.tensor([0.3, -0.5], dtype=taeda.float64)
T = taeda.tensor([1.0, 2.0], dtype=taeda.float64)


class Counted:
    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._opname)
        return func(*args, **kwargs or {})


def close(ours, theirs):
    taeda.testing.assert_close(ours, theirs)


def written(x):
    y = x.sin()
    z = y * y
    y.add_(1)
    buffer = taeda.zeros(3, dtype=x.dtype)
    buffer[0] = y[0]
    buffer[1:] += z
    x.mul_(2)
    return buffer * buffer, x.view(-1), x.t()


FUNCTIONS = {
    "elementwise": lambda x: x.sin() * x * x,
    "matrices": lambda x: (taeda.outer(x, x) @ x.exp()).softmax(0),
    "writes": written,
    "a view": lambda x: x.view(2, 1),
    "itself": lambda x: x,
    "a constant": lambda x: taeda.ones(3),
    "a tree": lambda x: {"a": x * 2, "b": (x.sum(), [x.prod()])},
    "branches": lambda x: x.sin() if x.sum() > 0 else x.cos(),
    "sort": lambda x: x.sort()[0] * x.max(),
    "linear": taeda.nn.Linear(2, 3, dtype=taeda.float64),
    "no_grad": taeda.no_grad()(lambda x: x * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_second_tangent_does_not_call_the_function(name):
    function = Counted(FUNCTIONS[name])
    value, derivative = linearize(function, X.clone())
    calls = function.calls
    assert calls <= 2
    for scale in (1, 3):
        expected = jvp(FUNCTIONS[name], (X.clone(),), (T * scale,))
        close(derivative(T * scale), expected[1])
        close(value, expected[0])
    assert function.calls == calls


def test_a_tangent_costs_only_the_operators_that_depend_on_it():
    w = taeda.ones(4, 4)
    function = lambda x: (w @ w @ w @ x).exp()  # noqa: E731
    _, derivative = linearize(function, taeda.ones(4))
    with Seen() as seen:
        derivative(taeda.ones(4))
    assert seen.names.count("mv") == 1 and not {"mm", "exp"} & set(seen.names)


def test_results_may_be_written():
    _, derivative = linearize(lambda x: (x, taeda.ones(2), x * 2), X)
    tangent = T.clone()
    for result in derivative(tangent):
        result.zero_()
    assert tangent.tolist() == T.tolist()
    assert [r.tolist() for r in derivative(tangent)] == [[1, 2], [0, 0], [2, 4]]


def test_random_numbers_are_those_of_the_value():
    function = Counted(lambda x: taeda.nn.functional.dropout(x * x, 0.5) * taeda.rand(8))
    x = taeda.ones(8)
    value, derivative = linearize(function, x)
    calls = function.calls
    close(derivative(x), 2 * value)
    close(derivative(x), 2 * value)
    assert function.calls == calls


def test_a_captured_tensor_that_is_written_is_written_by_each_call():
    count = taeda.zeros(())

    def function(x):
        count.add_(1)
        return x * count

    _, derivative = linearize(function, X)
    before = count.item()
    derivative(T)
    assert count.item() == before + 1


TRANSFORMS = {
    "grad": lambda g: grad(lambda x: g(x).sum())(X),
    "jvp": lambda g: jvp(g, (X,), (T,))[1],
    "vmap": lambda g: vmap(g)(taeda.stack([X, X + 1])),
    "jacfwd": lambda g: jacfwd(g)(X),
    "jacrev": lambda g: jacrev(g)(X),
    "functionalize": lambda g: functionalize(g)(X),
    "vmap of grad": lambda g: vmap(grad(lambda x: g(x).sum()))(taeda.stack([X, X + 1])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_nests_in_other_transforms(name):
    def function(x):
        return x.sin() * x * x

    ours = TRANSFORMS[name](lambda x: linearize(function, x)[1](T))
    close(ours, TRANSFORMS[name](lambda x: jvp(function, (x,), (T,))[1]))


def test_its_derivative_has_the_history_of_the_point_and_of_parameters():
    layer = taeda.nn.Linear(2, 2, dtype=taeda.float64)
    x = X.clone().requires_grad_()
    found = []
    for along in (
        lambda f: linearize(f, x)[1](T),
        lambda f: jvp(f, (x,), (T,))[1],
    ):
        y = along(lambda x: layer(x).tanh())
        found.append(taeda.autograd.grad(y.sum(), [x, layer.weight]))
    close(found[0], found[1])


def test_the_derivative_itself_is_transformed():
    _, derivative = linearize(lambda x: x.sin() * x, X)
    basis = taeda.eye(2, dtype=taeda.float64)
    close(vmap(derivative)(basis), jacfwd(lambda x: x.sin() * x)(X))
    close(jvp(derivative, (T,), (T,))[1], derivative(T))
    close(grad(lambda t: derivative(t).sum())(T), derivative(taeda.ones_like(T)))


class Square(taeda.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 5 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] * t


def test_a_custom_function_keeps_its_rules():
    _, derivative = linearize(Square.apply, X)
    close(derivative(T), 3 * X * T)
    x = X.clone().requires_grad_()
    expected = taeda.autograd.grad(
        jvp(lambda x: Square.apply(Square.apply(x)), (x,), (T,))[1].sum(), x
    )
    ours = linearize(lambda x: Square.apply(Square.apply(x)), x)[1](T)
    close(taeda.autograd.grad(ours.sum(), x), expected)
