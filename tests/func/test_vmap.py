"""vmap beside the loop it stands for and beside PyTorch: trees and dimensions of arguments and
results, nesting with derivatives, per-sample gradients of models, randomness, rules of custom
functions and operators, and what it refuses."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from taeda.library import Library, custom_op

F = nn.functional


def close(a: Any, b: Any, tolerance: float = 1e-5) -> None:
    assert a.shape == b.shape
    assert a.dtype is b.dtype
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), tolerance, tolerance)


def rows(function, *tensors) -> Any:
    return taeda.stack([function(*row) for row in zip(*tensors)])


def test_arguments_and_results_are_trees():
    x, w = taeda.randn(4, 3), taeda.randn(3)
    mapped = vmap(lambda d, k: {"sum": (d["x"] * k).sum(), "all": [d["x"] + k]}, in_dims=(0, None))
    result = mapped({"x": x}, w)
    close(result["sum"], (x * w).sum(1))
    close(result["all"][0], x + w)
    result = vmap(lambda a, b: (a, b), in_dims=({"x": 1}, None), out_dims=({"x": 1}, 0))(
        {"x": x.T}, w
    )
    close(result[0]["x"], x.T)
    close(result[1], w.expand(4, 3))
    assert vmap(lambda a: (a, 3), out_dims=(0, None))(x)[1] == 3


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_dim", [0, 1, -1])
def test_a_batch_may_lie_along_any_dimension(in_dim, out_dim):
    x = taeda.randn(2, 3, 4)
    y = vmap(lambda a: a.cumsum(0) * 2, in_dim, out_dim)(x)
    close(y, taeda.stack([a.cumsum(0) * 2 for a in x.unbind(in_dim)], out_dim))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 9])
def test_chunks_give_what_the_whole_gives(chunk_size):
    x = taeda.randn(3, 5)
    close(vmap(taeda.sin, 1, 1, chunk_size=chunk_size)(x), x.sin())
    pair = vmap(lambda a: (a.sum(), 7), 1, (0, None), chunk_size=chunk_size)(x)
    close(pair[0], x.sum(0))


def test_levels_nest():
    a, b = taeda.randn(4, 3), taeda.randn(5, 3)
    outer = vmap(vmap(taeda.dot, in_dims=(None, 0)), in_dims=(0, None))
    close(outer(a, b), a @ b.T)
    x = taeda.randn(2, 3, 4, 5)
    close(vmap(vmap(vmap(taeda.sum)))(x), x.sum(3))
    close(vmap(lambda r: vmap(lambda c: (r * c).sum() + r[0])(b))(a), a @ b.T + a[:, :1])


def test_writes_in_place_reach_views_and_bases():
    def change(a):
        b = a.clone()
        b[0] += 1
        b.view(-1)[2:].mul_(2)
        b.t_()
        b[1] = a[0, 1]
        return b

    x = taeda.randn(3, 2, 4)
    close(vmap(change)(x), rows(change, x))
    y = x.clone()
    vmap(lambda a: a.mul_(2))(y)
    close(y, x * 2)


def test_a_scalar_sample_promotes_as_a_scalar():
    x, wide = taeda.randn(3, 4), taeda.randn(3, dtype=taeda.float64)
    result = vmap(lambda a, s: a * s)(x, wide)
    assert result.dtype is taeda.float32
    result = vmap(lambda s: s + taeda.ones((), dtype=taeda.float64))(x[:, 0])
    assert result.dtype is taeda.float64


# --- with derivatives ---

POINTS = taeda.randn(4, 3, dtype=taeda.float64)


def cubes(x):
    return (x**3).sum() + x[0] * x[1]


DERIVATIVES = {
    "grad": grad(cubes),
    "jacrev": jacrev(lambda x: x.sin() * x.sum()),
    "jacfwd": jacfwd(lambda x: x.sin() * x.sum()),
    "hessian": hessian(cubes),
    "jvp": lambda x: jvp(lambda y: y.sin() * y[0], (x,), (x * 2,))[1],
    "vjp": lambda x: vjp(lambda y: y.sin() * y[0], x)[1](x * 2)[0],
    "grad of grad": grad(lambda x: (grad(cubes)(x) ** 2).sum()),
    "grad of jvp": grad(lambda x: jvp(cubes, (x,), (x.detach() * 0 + 1,))[1]),
    "jvp of grad": lambda x: jvp(grad(cubes), (x,), (x,))[1],
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_inside(name):
    function = DERIVATIVES[name]
    close(vmap(function)(POINTS), rows(function, POINTS), 1e-9)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_inside_and_outside(name):
    function = DERIVATIVES[name]
    outside = grad(lambda x: (vmap(function)(x) ** 2).sum())(POINTS)
    expected = taeda.stack([grad(lambda x: (function(x) ** 2).sum())(p) for p in POINTS])
    close(outside, expected, 1e-9)
    t = taeda.ones_like(POINTS)
    tangent = jvp(vmap(function), (POINTS,), (t,))[1]
    expected = taeda.stack([jvp(function, (p,), (p * 0 + 1,))[1] for p in POINTS])
    close(tangent, expected, 1e-9)


def test_an_ordinary_backward_goes_through():
    x, w = POINTS.clone().requires_grad_(), taeda.randn(3, dtype=taeda.float64, requires_grad=True)
    vmap(grad(lambda a: (a**3 * w).sum()))(x).sum().backward()
    close(x.grad, 6 * x * w, 1e-9)
    close(w.grad, (3 * x**2).sum(0), 1e-9)


def test_no_grad_inside_and_outside():
    x = POINTS.clone().requires_grad_()

    def half(a):
        with taeda.no_grad():
            b = a * 3
        return (a * b).sum()

    (g,) = taeda.autograd.grad(vmap(half)(x).sum(), x)
    close(g, 3 * x, 1e-9)
    close(vmap(grad(half))(POINTS), 3 * POINTS, 1e-9)
    with taeda.no_grad():
        result = vmap(grad(cubes))(x)
    assert not result.requires_grad


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.line = nn.Linear(4 * 3 * 3, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.line(x.flatten(1))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)).mean(1))


MODELS = {
    "convolutional": (Net, lambda: taeda.randn(6, 2, 6, 6)),
    "transformer": (Transformer, lambda: taeda.randint(0, 11, (6, 7))),
}


@pytest.mark.parametrize("name", MODELS)
def test_per_sample_gradients_of_a_model_equal_a_loops(name):
    make, inputs = MODELS[name]
    taeda.manual_seed(0)
    model, x, y = make(), inputs(), taeda.randint(0, 5, (6,))
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, sample, target):
        logits = functional_call(model, params, (sample.unsqueeze(0),))
        return F.cross_entropy(logits, target.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(6):
        expected = grad(loss)(params, x[i], y[i])
        for key, value in expected.items():
            close(found[key][i], value, 1e-4)


def test_an_ensemble_of_models():
    taeda.manual_seed(0)
    models = [Net() for _ in range(3)]
    params, buffers = stack_module_state(models)
    x = taeda.randn(4, 2, 6, 6)

    def call(params, buffers, x):
        return functional_call(models[0], (params, buffers), (x,))

    result = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    close(result, taeda.stack([m(x) for m in models]), 1e-4)


# --- random operators ---


def test_randomness():
    x = taeda.zeros(3, 5)
    draws = {
        "factory": lambda a: a + taeda.rand(5),
        "like": lambda a: taeda.randn_like(a),
        "dropout": lambda a: F.dropout(a + 1, 0.5),
        "in place": lambda a: a.clone().uniform_(),
        "bernoulli": lambda a: taeda.bernoulli(a + 0.5),
        "permutation": lambda a: taeda.randperm(5) + a,
        "multinomial": lambda a: taeda.multinomial(a + 1, 4),
        "normal": lambda a: taeda.normal(a, 1.0),
    }
    of_arguments = ("bernoulli", "multinomial", "normal")  # whose numbers follow from the sample's
    for name, draw in draws.items():
        with pytest.raises(RuntimeError, match="randomness"):
            vmap(draw)(x)
        taeda.manual_seed(5)
        expected = draw(x[0])
        if name in of_arguments:
            with pytest.raises(RuntimeError, match="randomness='same' does not go with"):
                vmap(draw, randomness="same")(x)
        else:
            taeda.manual_seed(5)
            same = vmap(draw, randomness="same")(x)
            assert all(taeda.equal(row, expected) for row in same), name
        taeda.manual_seed(5)
        different = vmap(draw, randomness="different")(x)
        assert different.shape == (3, *expected.shape), name
        assert not all(taeda.equal(row, different[0]) for row in different), name


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_draws_are_taken_or_refused_as_by_pytorch(randomness):
    torch = pytest.importorskip("torch")
    draws = (
        lambda t, x: t.bernoulli(x),
        lambda t, x: t.bernoulli(x, 0.5),
        lambda t, x: t.normal(0.0, x),
        lambda t, x: t.poisson(x),
        lambda t, x: t.binomial(4 * x, x),
        lambda t, x: t._standard_gamma(x),
        lambda t, x: t.multinomial(x, 1),
        lambda t, x: t.bernoulli(t.ones(3) / 2),
        lambda t, x: x.clone().bernoulli_(0.5),
        lambda t, x: t.rand_like(x),
        lambda t, x: t.nn.functional.dropout(x),
        lambda t, x: t.nn.functional.rrelu(x, training=True),
    )
    for i, draw in enumerate(draws):
        taken = []
        for t in (taeda, torch):
            x = t.linspace(0.1, 0.9, 12).reshape(3, 4)
            try:
                t.vmap(functools.partial(draw, t), randomness=randomness)(x)
                taken.append(True)
            except RuntimeError:
                taken.append(False)
        assert taken[0] == taken[1], i


def test_randomness_of_nested_levels():
    x = taeda.zeros(3, 4, 2)
    inner = vmap(lambda a: a + taeda.rand(2), randomness="same")
    y = vmap(inner, randomness="different")(x)
    assert all(taeda.equal(r, y[i, 0]) for i in range(3) for r in y[i])
    assert not taeda.equal(y[0], y[1])


# --- rules in Python ---


class Cube(taeda.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return x**3 * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        return gy * 3 * x**2 * w, (gy * x**3).sum()

    @staticmethod
    def jvp(ctx, tx, tw):
        x, w = ctx.saved_tensors
        return 3 * x**2 * w * tx + x**3 * tw


class CubeByRule(taeda.autograd.Function):
    forward, setup_context, backward = Cube.forward, Cube.setup_context, Cube.backward

    @staticmethod
    def vmap(info, in_dims, x, w):
        assert info.batch_size == 4
        w = w if in_dims[1] is None else w.unsqueeze(-1)
        return Plain.apply(x, w), 0


class Plain(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x**3 * w

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        gw = gy * x**3
        return gy * 3 * x**2 * w, gw.sum() if w.dim() == 0 else gw.sum(-1, keepdim=True)


@pytest.mark.parametrize("function", [Cube, CubeByRule])
@pytest.mark.parametrize("batched", [False, True])
def test_functions_inside(function, batched):
    x, w = POINTS.clone().requires_grad_(), taeda.tensor(2.0, dtype=taeda.float64)
    w = (w * taeda.arange(1, 5) if batched else w).requires_grad_()
    in_dims = (0, 0 if batched else None)
    y = vmap(function.apply, in_dims)(x, w)
    scale = w.unsqueeze(1) if batched else w
    close(y, x**3 * scale, 1e-9)
    y.sum().backward()
    close(x.grad, 3 * x**2 * scale, 1e-9)
    close(w.grad, (x**3).sum(1) if batched else (x**3).sum(), 1e-9)
    inside = vmap(grad(lambda a, b: function.apply(a, b).sum()), in_dims)(x.detach(), w.detach())
    close(inside, (3 * x**2 * scale).detach(), 1e-9)
    both = grad(
        lambda a: vmap(grad(lambda p, b: function.apply(p, b).sum()), in_dims)(a, w.detach()).sum()
    )(x.detach())
    close(both, (6 * x * scale).detach(), 1e-9)


def test_a_generated_rule_has_tangents():
    x, w = POINTS, taeda.tensor(2.0, dtype=taeda.float64)
    outside = jvp(lambda a: vmap(Cube.apply, (0, None))(a, w), (x,), (x,))[1]
    close(outside, 3 * x**3 * w, 1e-9)
    inside = vmap(lambda a: jvp(lambda b: Cube.apply(b, w), (a,), (a,))[1])(x)
    close(inside, 3 * x**3 * w, 1e-9)


def test_functions_without_a_rule_say_so():
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(lambda a: Plain.apply(a, a))(POINTS)


def test_operators_of_a_program():
    @custom_op("test_vmap::scaled", mutates_args=())
    def scaled(x: taeda.Tensor, factor: float) -> taeda.Tensor:
        return x * factor

    x = taeda.randn(3, 4)
    close(vmap(lambda a: scaled(a, 2.0))(x), x * 2)  # sample by sample
    seen = []

    @scaled.register_vmap
    def rule(info, in_dims, x, factor):
        seen.append((info.batch_size, in_dims))
        return scaled(x, factor), in_dims[0]

    close(vmap(lambda a: scaled(a, 2.0), 1, 1)(x), x * 2)
    assert seen == [(4, (0, None))]
    close(vmap(lambda a: a + scaled(taeda.ones(4), 2.0))(x), x + 2)
    assert len(seen) == 1
    close(vmap(vmap(lambda a: scaled(a, 3.0)))(x), x * 3)


def test_operators_that_write_any_argument():
    namespace = "test_vmap_writes"
    library = Library(namespace, "DEF")
    library.define("into(Tensor x, Tensor(a!) y) -> Tensor(a!)")
    library.impl("into", lambda x, y: y.add_(x), "CPU")
    library.define("both(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))")
    library.impl("both", lambda x, y: (x.add_(1), y.mul_(2)), "CPU")
    ops = getattr(taeda.ops, namespace)
    x, y = taeda.randn(3, 4), taeda.randn(3, 4)
    written = y.clone()
    close(vmap(ops.into)(x, written), x + y)
    close(written, x + y)
    a, b = vmap(lambda a, b: ops.both(a.clone(), b.clone()))(x, y)
    close(a, x + 1)
    close(b, y * 2)


samples, columns = taeda.randn(3, 4, 5), taeda.tensor([2, 0, 1])
INDEXED = {
    "one": lambda a, k: a[k],
    "negative": lambda a, k: a[k - 3],
    "behind a slice": lambda a, k: a[:, k],
    "between": lambda a, k: a[None, k, ..., None],
    "two": lambda a, k: a[k, k + 1],
    "two apart": lambda a, k: a[k, None, k],
    "with a tensor": lambda a, k: a[k, taeda.tensor([1, 3])],
    "of the sample": lambda a, k: a[a.sum(1).argmax()],
}


@pytest.mark.parametrize("name", INDEXED)
def test_a_number_of_each_sample_is_an_index(name):
    f = INDEXED[name]
    close(vmap(f)(samples, columns), rows(f, samples, columns))
    slope = grad(lambda a, k: f(a, k).sin().sum())
    close(vmap(slope)(samples, columns), rows(slope, samples, columns))
    close(vmap(f, (None, 0))(samples[0], columns), rows(f, samples[:1].expand(3, 4, 5), columns))


def test_a_number_of_each_sample_is_where_to_write():
    def f(a, k):
        y = a * 1
        y[k] = 3.0
        y[:, k] = a[0, 1]
        y[k, k] += 1
        y[k + 1] = a[:, :5].sum(0)
        return y

    close(vmap(f)(samples, columns), rows(f, samples, columns))


def test_what_counts_runs_sample_by_sample():
    counted = [lambda a: taeda.histc(a, 3, -1, 1), lambda a: taeda.histc(a, 4)]
    for f in counted:
        close(vmap(f)(samples), rows(f, samples))
    close(vmap(lambda k: taeda.repeat_interleave(k.expand(2)))(columns * 0 + 2),
          taeda.tensor([0, 0, 1, 1]).expand(3, 4))  # fmt: skip
    with pytest.raises(RuntimeError, match="equal size"):
        vmap(lambda k: taeda.repeat_interleave(k.view(1)))(columns)


# --- what is refused ---

x = taeda.randn(2, 3, 4)
REFUSED = {
    "item": (lambda a: a.sum().item(), RuntimeError, "item"),
    "control flow": (lambda a: a if a.sum() > 0 else -a, RuntimeError, "control flow"),
    "nonzero": (lambda a: a.nonzero(), RuntimeError, "depends on values"),
    "mask": (lambda a: a[a > 0], RuntimeError, "depends on values"),
    "numpy": (lambda a: a.numpy(), RuntimeError, "storage"),
    "data_ptr": (lambda a: a.data_ptr(), RuntimeError, "storage"),
    "tolist": (lambda a: a.tolist(), RuntimeError, "storage"),
    "dlpack": (lambda a: a.__dlpack__(), RuntimeError, "storage"),
    "storage": (lambda a: a.untyped_storage(), NotImplementedError, "storage"),
    "pickle": (lambda a: pickle.dumps(a), RuntimeError, "storage"),
    "out": (lambda a: taeda.sin(a, out=taeda.empty(3, 4)), RuntimeError, "out="),
    "write": (lambda a: taeda.zeros(3, 4).add_(a), RuntimeError, "not possible"),
    "resize": (
        lambda a: a.resize_(1, 1, 1, 2, memory_format=taeda.channels_last),
        RuntimeError,
        "vmap",
    ),
    "no tensor": (lambda a: 3, ValueError, "must only return Tensors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    function, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        vmap(function)(x)


def test_a_tensor_that_escapes_is_refused():
    kept = []
    vmap(lambda a: kept.append(a) or a)(x)
    with pytest.raises(RuntimeError, match="had ended"):
        kept[0] + 1
    assert "ended" in repr(kept[0])
    vmap(lambda a: [print(a), a][1])(x)  # a batched tensor can be looked at


CALLS = [
    "vmap(lambda a: a, 'x')(X)",
    "vmap(lambda a: a)()",
    "vmap(lambda a: a, 3)(X)",
    "vmap(lambda a: a, (0, 0))(X)",
    "vmap(lambda a, b: a)(X, 3)",
    "vmap(lambda a, b: a, None)(X, 3)",
    "vmap(lambda a, b: a, (None, None))(X, X)",
    "vmap(lambda a, b: a)(X, Y)",
    "vmap(lambda a: a, out_dims='x')(X)",
    "vmap(lambda a: a, out_dims=(0, 0))(X)",
    "vmap(lambda a: a, out_dims=None)(X)",
    "vmap(lambda a: a, out_dims=4)(X)",
    "vmap(lambda a: 3)(X)",
    "vmap(lambda a: a, randomness='some')(X)",
    "vmap(lambda a: a, chunk_size=0)(X)",
    "vmap(lambda a: a.sum(5))(X)",
]


@pytest.mark.parametrize("text", CALLS)
def test_mistakes_are_pytorchs(text):
    torch = pytest.importorskip("torch")
    outcomes = []
    for framework in (taeda, torch):
        scope = {"vmap": framework.vmap, "X": framework.ones(2, 3), "Y": framework.ones(3, 2)}
        with pytest.raises(Exception) as raised:
            eval(text, scope)
        outcomes.append(type(raised.value).__name__)
    assert outcomes[0] == outcomes[1]


def first_then_second(x):
    y = x.clone()
    y[0].mul_(x[1])
    y[1] = y[1].sin() * x[0]
    return y


def square_with_a_sine(x):
    y = x * x
    y[0] = x[1].sin()
    return y


@pytest.mark.parametrize("f", [first_then_second, square_with_a_sine])
def test_forward_mode_twice_of_writes_through_views(f):
    torch = pytest.importorskip("torch")
    rows = [[1.0, 2.0], [3.0, 0.5], [0.3, 0.4]]
    for twice in (lambda m: m.jacfwd(m.jacfwd(f)), lambda m: m.jacfwd(f)):
        found = taeda.vmap(twice(taeda.func))(taeda.tensor(rows))
        expected = torch.vmap(twice(torch.func))(torch.tensor(rows))
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-5, atol=1e-6)
