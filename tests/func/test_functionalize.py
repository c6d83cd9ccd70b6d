"""functionalize: the same values without writes in place, as the functions beneath see."""

import numpy as np
import pytest

import taeda
from taeda.func import functionalize, grad, jacrev, jvp, vjp
from taeda.utils._python_dispatch import TorchDispatchMode

X = [[0.3, -1.2, 2.0], [0.5, 1.5, -0.7]]


class Recorder(TorchDispatchMode):
    """Keeps the schemas of what runs."""

    def __init__(self):
        super().__init__()
        self.schemas = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.schemas.append(func._schema)
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        return [schema.name.split("::")[1] for schema in self.schemas]

    def writers(self):
        return [s.name for s in self.schemas if s.is_mutable]

    def views(self):
        aliased = lambda s: any(a.alias_info and not a.is_write for a in s.arguments)  # noqa: E731
        names = [s.name for s in self.schemas if aliased(s)]
        return [name for name in names if name != "aten::lift_fresh"]  # values of torch.tensor


def through_views(t, x):
    y = x * 2
    y[0].mul_(3)
    y[:, 1:].add_(x[:, :2])
    y.t()[1] -= 1
    y.view(-1)[::2].exp_()
    return y, y.sum()


def written_base_seen_in_view(t, x):
    y = x.clone()
    row, flat = y[1], y.view(6)
    y.mul_(2)
    flat[4] = 7
    return row, flat, y


def written_input(t, x):
    x.add_(1)
    x[0].zero_()
    return x * x


def written_view_of_input(t, x):
    row = x.select(0, 1)
    row.copy_(row + 5)
    return row


def fills(t, x):
    y = t.empty(2, 3)
    y.fill_(2)
    y[0] = x[1]
    y[:, 2] = 9
    z = t.zeros(3)
    z.copy_(t.arange(3))
    return y, z, t.ones_like(x).zero_()


def out_arguments(t, x):
    a, b = t.empty(2, 3), t.empty(0)
    t.add(x, 1, out=a)
    t.mul(x, a, out=b)
    t.sum(x, 0, out=a[0])
    return a, b


def out_arguments_of_several(t, x):
    values, indices = t.empty(2, 3), t.empty(2, 3, dtype=t.int64)
    t.sort(x, descending=True, out=(values, indices))
    more, places = t.empty(0), t.empty(0, dtype=t.int64)
    t.topk(x, 2, out=(more, places))
    last, order = t.empty(2, 3), t.empty(2, 3, dtype=t.int64)
    t.sort(x, stable=True, dim=0, out=(last, order))
    q, r = t.empty(2, 2), t.empty(2, 3)
    t.linalg.qr(x, out=(q, r))
    return values, indices, more, places, last, order, q @ r


def pieces(t, x):
    y = x.clone()
    left, right = y.split([1, 2], 1)
    first, second = y.unbind(0)
    left.add_(10)
    second.neg_()
    right.mul_(first.sum())
    return y, left, right, first, second


def diagonals(t, x):
    y = t.zeros(3, 3)
    y.diagonal().add_(x[0])
    y.diagonal(1).copy_(x[1, :2])
    return y, y.diagonal(-1)


def shapes(t, x):
    y = x.clone().unsqueeze(1)
    y.squeeze(1).mul_(2)
    y.permute(2, 0, 1).add_(1)
    y.transpose(0, 2).relu_()
    return y, y.expand(2, 4, 3)


def windows(t, x):
    y = x.clone()
    y.unfold(1, 2, 2).add_(1)
    y.as_strided((2, 2), (1, 3)).mul_(2)
    y.t().as_strided((2,), (2,), 1).add_(3)
    return y, y.t()


def changed_layout(t, x):
    y = x.clone()
    y.t_().add_(1)
    y.unsqueeze_(0).mul_(2)
    return y.squeeze_(0)


def complex_parts(t, x):
    z = t.view_as_complex(x[:, :2].clone())
    z.mul_(1j)
    t.view_as_real(z)[:, 0].add_(1)
    z.real.mul_(2)
    return z, t.view_as_real(z)


def dtypes(t, x):
    y = (x * 10).to(t.int32)
    y += 3
    y.div_(2, rounding_mode="floor")
    x.clamp_(-1, 1).to(t.float64).mul_(2)
    z = (x * 1).detach()
    z.view(t.int32)[0].zero_()
    return y, x, z, z.view(t.uint8)


def detached(t, x):
    y = x * 1
    y.detach().mul_(3)
    return y, x.detach().clone().add_(1)


def scattered(t, x):
    y = x.clone()
    y.masked_fill_(x > 1, -1)
    y[t.tensor([1, 0]), t.tensor([0, 2])] = 5
    y.index_add_(1, t.tensor([0, 0]), x[:, :2])
    y.scatter_(1, t.tensor([[0], [2]]), 8)
    return y


def norm_layer(t, x):
    layer = t.nn.BatchNorm1d(3)
    mean, var = t.zeros(3, dtype=x.dtype), t.ones(3, dtype=x.dtype)
    y = t.nn.functional.batch_norm(x, mean, var, training=True)
    return y, mean, var, layer.weight


PROGRAMS = [
    through_views, written_base_seen_in_view, written_input, written_view_of_input, fills,
    out_arguments, out_arguments_of_several, pieces, diagonals, shapes, windows, changed_layout,
    complex_parts, dtypes, detached, scattered, norm_layer,
]  # fmt: skip
# What these write has no functional operator: it is written in a copy.
WRITES_IN_COPIES = {"scattered"}


def leaves(tree):
    return [tree] if isinstance(tree, taeda.Tensor) else list(tree)


def same(found, expected):
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().tolist(), b.detach().tolist(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_it_computes_and_writes_what_the_function_does(program, remove):
    ours, eager = taeda.tensor(X), taeda.tensor(X)
    expected = program(taeda, eager)
    recorder = Recorder()
    pure = functionalize(lambda x: program(taeda, x), remove=remove)
    with recorder:
        found = pure(ours)
    same(found, expected)
    same(ours, eager)
    written = program in (written_input, written_view_of_input, dtypes)
    writers = recorder.writers()
    if written:  # in the end, the input itself
        assert writers.pop() == "aten::copy_"
    if program.__name__ not in WRITES_IN_COPIES:
        assert not writers
    if remove == "mutations_and_views":
        assert set(recorder.views()) <= {"aten::detach"}


# Not out= and pieces, which autograd refuses to write; detached is below.
NOT_DIFFERENTIABLE = (out_arguments, out_arguments_of_several, pieces, detached)
DIFFERENTIABLE = [p for p in PROGRAMS if p not in NOT_DIFFERENTIABLE]


@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_gradients_through_it_are_those_of_the_function(program):
    def loss(x):
        return sum(
            (y * y).sum().real if y.is_complex() else (y * y).sum()
            for y in leaves(program(taeda, x * 1))
            if y.is_floating_point() or y.is_complex()
        )

    x = taeda.tensor(X, dtype=taeda.float64)
    expected = grad(loss)(x)
    for remove in ("mutations", "mutations_and_views"):
        pure = functionalize(loss, remove=remove)
        same(grad(pure)(x), expected)
        same(functionalize(grad(loss), remove=remove)(x), expected)
        slope = jvp(pure, (x,), (taeda.ones_like(x),))[1]
        np.testing.assert_allclose(slope.item(), expected.sum().item(), atol=1e-12)


def test_what_is_written_through_detach_has_no_history_outside():
    """As in PyTorch: the new value was computed without the old one's history."""

    def f(x):
        y = x * 1
        y.detach().mul_(3)
        return (y * y).sum()

    x = taeda.tensor(X)
    assert grad(functionalize(f))(x).abs().max().item() == 0
    same(functionalize(grad(f))(x), 6 * x)


def test_what_pytorch_shows_is_shown():
    def f(x):
        y = x.view(6)
        y.add_(1)
        return x

    seen = {}
    for remove in ("mutations", "mutations_and_views"):
        x = taeda.tensor(X)
        with Recorder() as recorder:
            functionalize(f, remove=remove)(x)
        seen[remove] = recorder.names
    assert seen["mutations"] == ["view", "add", "view", "copy_"]
    assert seen["mutations_and_views"] == ["view_copy", "add", "view_copy", "copy_"]


def test_the_profile_beneath_shows_no_writes():
    taeda._C._profile_start()
    functionalize(through_views_of_two, remove="mutations_and_views")(taeda.tensor(X))
    rows = taeda._C._profile_rows(taeda._C._profile_stop()[0])
    whole = [r for r in rows if not any(o[2] <= r[2] and r[3] <= o[3] and o != r for o in rows)]
    names = {row[0].split("::")[1].split(".")[0] for row in whole}
    assert "select_copy" in names and "select_scatter" in names
    assert not names & {"mul_", "add_", "sub_", "exp_", "select", "slice", "transpose", "view"}


def through_views_of_two(x):
    return through_views(taeda, x)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.squeeze_(0),
        lambda x: x.unsqueeze_(-1),
        lambda x: x.transpose_(1, 2),
        lambda x: x.transpose_(1, 2).add_(1),
        lambda x: x.squeeze_(0)[0].mul_(5),
        lambda x: x.resize_(3, 2),
    ],
)
def test_the_layout_that_the_function_gives_an_argument_reaches_it(change):
    ours, eager = taeda.tensor([X]), taeda.tensor([X])
    same(functionalize(change)(ours), change(eager))
    same(ours, eager)
    assert ours.stride() == eager.stride()


def test_levels_nest():
    inner = functionalize(through_views_of_two)
    with Recorder() as recorder:
        found = functionalize(lambda x: inner(x * 2), remove="mutations_and_views")(taeda.tensor(X))
    same(found, through_views(taeda, taeda.tensor(X) * 2))
    assert not recorder.writers() and not recorder.views()


def test_a_tensor_given_twice_is_one():
    def f(a, b):
        a.add_(1)
        return a * b

    x = taeda.ones(2)
    assert functionalize(f)(x, x).tolist() == [4, 4] and x.tolist() == [2, 2]


def test_a_captured_tensor_may_be_read_and_not_written_by_what_is_inside():
    w = taeda.ones(3)
    assert functionalize(lambda x: x.mul_(w) + w)(taeda.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="mutating a non-functional tensor"):
        functionalize(lambda x: w.add_(x))(taeda.ones(3))


def test_values_may_be_looked_at():
    def f(x):
        x.mul_(2)
        if x[0] > 1:
            x.add_(x.sum().item())
        return x.tolist(), str(x)

    x = taeda.tensor([1.0, 2.0])
    assert functionalize(f)(x) == ([8.0, 10.0], "tensor([ 8., 10.])")


def test_values_are_read_through_levels():
    x = taeda.tensor([1.0, 2.0])
    assert functionalize(functionalize(lambda x: x * x[1].item()))(x).tolist() == [2, 4]
    outer = lambda x: functionalize(lambda y: y * x.sum().item())(x)  # noqa: E731
    assert functionalize(outer)(x).tolist() == [3, 6]
    slopes = jacrev(lambda x: x.prod() * x)  # whose gradient asks for zeros
    for f in (slopes, functionalize(slopes)):
        found = taeda.vmap(functionalize(f))(taeda.stack([x, -x]))
        assert found.tolist() == taeda.stack([slopes(x), slopes(-x)]).tolist()


WRITES = {
    "a row": lambda y: y.as_strided((2, 2), (1, 1))[0].add_(10),
    "a column": lambda y: y.as_strided((3, 2), (1, 2))[:, 1].mul_(3),
    "a window": lambda y: y.unfold(0, 3, 1)[1].add_(10),
    "part of a window": lambda y: y.unfold(0, 3, 2)[:, 1:][0].copy_(y[3:]),
    "reshaped": lambda y: y.as_strided((2, 2), (1, 1)).unsqueeze(0).transpose(1, 2)[0, 1].neg_(),
    "repeated": lambda y: y[:1].expand(3)[1].add_(10),
}


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_through_a_part_of_overlapping_views_reaches_all_of_them(name, remove):
    def run(y):
        y = y * 1
        windows = y.unfold(0, 2, 1)
        WRITES[name](y)
        return y, windows

    x = taeda.arange(5.0, dtype=taeda.float64) + 1
    same(functionalize(run, remove=remove)(x), run(x))
    slope = lambda f: grad(lambda x: (f(x)[1].exp()).sum())(x)  # noqa: E731
    same(slope(functionalize(run, remove=remove)), slope(run))


def test_a_write_to_a_part_of_an_overlapping_argument_is_refused():
    with pytest.raises(RuntimeError, match="single memory location"):
        functionalize(lambda x: x[0].add_(1))(taeda.ones(1).expand(3))


def test_mistakes():
    with pytest.raises(RuntimeError, match="invalid argument for remove=all"):
        functionalize(lambda x: x, remove="all")
    kept = []
    functionalize(kept.append)(taeda.ones(2))
    with pytest.raises(RuntimeError, match="has returned"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="output with shape"):
        functionalize(lambda x: x.add_(taeda.ones(2, 3)))(taeda.ones(3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        functionalize(lambda x: x.add_(0.5))(taeda.ones(3, dtype=taeda.int64))
    with pytest.raises(RuntimeError, match="single memory location"):
        functionalize(lambda x: x.expand(2, 3).add_(1))(taeda.ones(3))
    # a function that raises leaves its level
    assert taeda.ones(2).add_(1).tolist() == [2, 2]


def test_a_function_that_is_differentiated_outside_must_not_write():
    class Double(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gy):
            return 2 * gy

    def f(x):
        return Double.apply(x * 1)

    assert functionalize(f)(taeda.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="functionalize: Double writes an argument"):
        taeda.func.grad(lambda x: functionalize(f)(x).sum())(taeda.ones(2))


def test_transforms_inside_of_it():
    def f(x):
        y = x.clone()
        y[0].mul_(2)
        value, back = vjp(lambda z: (z * z).view(-1), y)
        return back(value)[0].add_(1), jacrev(lambda z: z[0] * z[1])(y)

    same(functionalize(f)(taeda.tensor(X)), f(taeda.tensor(X)))
