"""Traces: what they record inside and outside of other modes, and that a program run on other
inputs does what the function does to them."""

from __future__ import annotations

import gc
import warnings

import pytest
from tests.models import convnet, lstm, mlp, transformer

import taeda
from taeda import _C, nn
from taeda.func import functional_call, functionalize, grad, jacfwd, jvp, vmap


def trace(f, *inputs, **options):
    return _C._trace(f, inputs, **options)


def conversions(program):
    return sum(taeda.bfloat16 in args for _, args, *_ in program.nodes)


def names(program):
    return [node[0].name() for node in program.nodes]


def listed(result):
    return [result] if isinstance(result, taeda.Tensor) else list(result)


def assert_same(found, expected, **tolerance):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        taeda.testing.assert_close(a, b, **tolerance)


def assert_replays(f, inputs, others, **options):
    """The program of f(inputs), run on the others, returns and writes what f does."""
    program = trace(f, *inputs, **options)
    kept = [x.detach().clone() for x in others]
    taeda.manual_seed(5)
    expected = [y.detach() for y in listed(f(*others))]
    taeda.manual_seed(5)
    found = [y.detach() for y in program.run(kept)]
    assert_same(found, expected)
    assert_same(kept, [x.detach() for x in others])
    return program


def pair(*sizes):
    return [taeda.randn(*sizes)], [taeda.randn(*sizes)]


# --- what is written down ---


def test_a_program_is_printed_a_line_a_call():
    program = trace(lambda x: (x + 2.0).sum(0, keepdim=True), taeda.ones(2, 3))
    assert str(program) == (
        "program(%0: float32[2, 3]):\n"
        "  %1 = aten::add.Tensor(%0, 2.0)\n"
        "  %2 = aten::sum.dim_IntList(%1, [0], True)\n"
        "  return %2\n"
    )


def test_nodes_have_operators_arguments_and_numbers():
    weight = taeda.ones(3)
    program = trace(lambda x: taeda.stack([x, weight]).softmax(-1, dtype=taeda.float64), weight * 2)
    (stack, stack_args, _, (stacked,), _), (softmax, args, kwargs, (out,), recorded) = program.nodes
    assert stack is taeda.ops.aten.stack.default and softmax.name().startswith("aten::softmax")
    assert stack_args == ([0, 1],) and repr(stack_args) == "([%0, %1],)"
    assert args[:2] == (stacked, 1) and isinstance(args[0], _C._ValueNumber)
    assert not isinstance(args[1], _C._ValueNumber) and taeda.float64 in [*args, *kwargs.values()]
    assert recorded and program.inputs == [0] and program.outputs == [out]
    assert list(program.constants) == [1] and program.constants[1] is weight
    assert program.values[stacked][:2] == (taeda.float32, taeda.Size([2, 3]))


def test_nothing_is_recorded_outside():
    program = trace(lambda x: x * 2, taeda.ones(2))
    taeda.ones(2) * 3
    assert names(program) == ["aten::mul.Tensor"] and not taeda.jit.is_tracing()
    assert trace(lambda x: x if taeda.jit.is_tracing() else x * 2, taeda.ones(2)).nodes == []


def test_composites_are_whole_or_their_parts():
    def f(x):
        return taeda.dist(x, x * 2)

    x = taeda.ones(3)
    assert "aten::dist" in names(trace(f, x))
    assert "aten::dist" not in names(trace(f, x, composites=False))
    # Where gradients are recorded, backward needs the parts.
    assert "aten::dist" not in names(trace(f, x.requires_grad_()))


def test_a_trace_ends_with_an_error():
    def fail(x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        trace(fail, taeda.ones(2))
    assert not taeda.jit.is_tracing()
    assert names(trace(lambda x: x * 2, taeda.ones(2))) == ["aten::mul.Tensor"]


# --- running again ---


@pytest.mark.parametrize("make", [mlp, convnet, transformer, lstm], ids=lambda make: make.__name__)
def test_models_replay_on_new_inputs(make):
    model, x = make()
    model.eval()
    run = (lambda x: model(x)[0]) if make is lstm else model
    assert_replays(run, [x], [taeda.randn_like(x)])


def test_a_replay_is_recorded_by_autograd():
    model, x = convnet()
    program = trace(model.eval(), x)
    y = taeda.randn_like(x)
    program.run([y])[0].square().sum().backward()
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(y).square().sum().backward()
    assert_same(found, [p.grad for p in model.parameters()])
    with taeda.no_grad():
        assert not program.run([y])[0].requires_grad


def test_training_batch_norm_writes_its_statistics_at_each_run():
    norm = nn.BatchNorm1d(3)
    (x,), (y,) = pair(5, 3)
    program = trace(norm, x)
    norm.reset_running_stats()
    found = program.run([y])
    mean, var, count = norm.running_mean.clone(), norm.running_var.clone(), norm.num_batches_tracked
    assert count == 1
    norm.reset_running_stats()
    assert_same(found, [norm(y)])
    assert_same([mean, var], [norm.running_mean, norm.running_var])


def test_writes_and_views_replay():
    def f(x):
        y = x.clone()
        y[0].mul_(2)
        y.t()[1] += 1
        first, second = y.split(2)
        first.copy_(second[:2].exp())
        y.view(-1)[::2].fill_(0.5)
        x[1] = 3
        return y, first, x.diagonal()

    assert_replays(f, *pair(4, 3))


def test_out_and_layout_changes_replay():
    def f(x):
        out = taeda.empty(0)
        taeda.mul(x, 2, out=out)
        out.t_().unsqueeze_(0)
        return taeda.add(out, 1, out=taeda.empty(1, 3, 4)), out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_replays(f, *pair(4, 3))


def test_random_numbers_follow_the_seed():
    def f(x):
        y = nn.functional.dropout(x, 0.5) + taeda.randn(3) + taeda.rand_like(x)
        return y.bernoulli_(0.3), taeda.randperm(4), x.normal_()

    assert_replays(f, *pair(50, 3))


def test_what_the_function_makes_of_numbers_is_made_at_each_run():
    def f(x):
        total = taeda.tensor([1.0, 2.0])
        total += x
        return total

    program = assert_replays(f, *pair(2))
    first = program.run([taeda.ones(2)])
    assert_same(program.run([taeda.ones(2)]), first)


def test_a_tensor_that_shares_memory_without_an_operator_is_known():
    def f(x):
        y = x * 2
        y.data.add_(1)
        return y, y.data[0]

    assert_replays(f, *pair(3))

    def swapped(x):
        y = taeda.zeros(3)
        y.data = x * 3
        return y + 1

    assert_replays(swapped, *pair(3))


# --- gradients inside ---


def parameter_gradients(model, loss):
    def f(x, *values):
        leaves = [v.detach().requires_grad_() for v in values]
        params = dict(zip(dict(model.named_parameters()), leaves))
        return taeda.autograd.grad(loss(functional_call(model, params, (x,))), leaves)

    return f, [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("make", [mlp, convnet, transformer], ids=lambda make: make.__name__)
def test_forward_and_backward_replay(make):
    """Also of what only autograd saves: indices of maxima, masks, statistics."""
    taeda.manual_seed(0)
    model, x = make()
    f, params = parameter_gradients(model, lambda y: y.square().mean())
    others = [p + 0.1 * taeda.randn_like(p) for p in params]
    program = assert_replays(f, [x, *params], [taeda.randn_like(x), *others])
    before = len(program.nodes)
    program.remove_dead_code()
    assert len(program.nodes) <= before


def test_backward_of_writes_replays():
    def f(x):
        x = x.detach().requires_grad_()
        y = x * 1.5
        y[0].mul_(x[1])
        y.mul_(y.exp())  # what is overwritten is copied for backward
        y[:, 1].sigmoid_()
        y.square().sum().backward()
        return x.grad

    assert_replays(f, *pair(4, 3))


def test_second_derivatives_replay():
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = taeda.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
        return taeda.autograd.grad((g * g).sum(), x)

    assert_replays(f, *pair(5))


def test_a_training_step_replays():
    def f(weight, x):
        w = weight.detach().requires_grad_()
        ((x @ w).tanh().sum()).backward()
        with taeda.no_grad():
            w -= 0.1 * w.grad
        return w

    assert_replays(
        f, [taeda.randn(3, 2), taeda.randn(4, 3)], [taeda.randn(3, 2), taeda.randn(4, 3)]
    )


def test_a_custom_function_replays_with_its_backward():
    class Cube(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gy):
            (x,) = ctx.saved_tensors
            return 3 * x * x * gy

    def f(x):
        x = x.detach().requires_grad_()
        return taeda.autograd.grad(Cube.apply(x).sum(), x)

    assert_replays(f, *pair(5))


# --- beside other modes ---


def per_sample(x):
    return (x.sin() * x[0]).sum() + taeda.nn.functional.softmax(x, 0).max()


def writes(x):
    y = x.clone()
    y[1:].mul_(y[:-1].clone())
    y.add_(1)
    return y


NESTED = {
    "grad": lambda x: grad(lambda x: per_sample(x[0]))(x),
    "jvp": lambda x: jvp(lambda x: per_sample(x[0]) * x, (x,), (x.cos(),)),
    "jvp of jvp": lambda x: jvp(lambda x: jvp(taeda.sin, (x,), (x * x,))[1], (x,), (x.cos(),)),
    "jacfwd": lambda x: jacfwd(lambda x: x[0].exp() * x[1])(x),
    "grad of jvp": lambda x: grad(lambda x: jvp(taeda.sin, (x,), (x * x,))[1].sum())(x),
    "jvp of writes": lambda x: jvp(writes, (x,), (x.cos(),)),
    "vmap": vmap(per_sample),
    "vmap of grad": vmap(grad(per_sample)),
    "grad of vmap": grad(lambda x: vmap(per_sample)(x).sum()),
    "vmap of writes": vmap(writes),
    "vmap of vmap": vmap(vmap(lambda x: x.sin() * 2)),
    "random vmap": vmap(lambda x: x + taeda.randn(3), randomness="different"),
    "functionalize": functionalize(writes),
    "functionalize of grad": functionalize(grad(lambda x: writes(x).sin().sum())),
    "grad of functionalize": grad(lambda x: functionalize(writes)(x).sin().sum()),
    "vmap of functionalize": vmap(functionalize(writes)),
    "functionalize of vmap": functionalize(vmap(writes)),
}


@pytest.mark.parametrize("name", NESTED)
def test_transforms_inside_are_recorded_as_what_they_become(name):
    program = assert_replays(NESTED[name], *pair(4, 3))
    assert not program.constants or all(c.numel() <= 12 for c in program.constants.values())


def test_functionalize_inside_leaves_no_writes():
    program = trace(functionalize(writes), taeda.randn(4, 3))
    assert not any(node[0]._schema.is_mutable for node in program.nodes)


def test_autocast_inside_records_the_conversions():
    model, x = mlp()

    def f(x):
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            return model(x)

    program = assert_replays(f, [x], [taeda.randn_like(x)])
    assert conversions(program) == 5
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        model(x)  # leaves conversions of the parameters behind
        assert conversions(trace(model, x)) == 5


def test_a_trace_inside_of_vmap_records_the_samples_program():
    found = []

    def f(x):
        found.append(trace(lambda x: x.sin() * 2, x))
        return found[0].run([x * 3])[0]

    x = taeda.randn(4, 3)
    taeda.testing.assert_close(vmap(f)(x), (x * 3).sin() * 2)
    assert names(found[0]) == ["aten::sin", "aten::mul.Tensor"]
    assert found[0].values[0][1] == taeda.Size([3])


# --- dead code ---


def test_dead_code_goes_and_writes_that_are_read_stay():
    bias = taeda.zeros(3)

    def f(x):
        x.exp().sum()  # nobody reads it
        dead = x * 5
        dead.add_(1)
        y = x * 2
        view = y[0]
        view.add_(1)
        bias.add_(1)
        taeda.rand(2)
        return y

    program = trace(f, taeda.randn(2, 3))
    program.remove_dead_code()
    assert names(program) == [
        "aten::mul.Tensor", "aten::select.int", "aten::add_.Tensor", "aten::add_.Tensor",
        "aten::rand.generator",
    ]  # fmt: skip
    x = taeda.randn(2, 3)
    assert_same(program.run([x])[0], x * 2 + taeda.tensor([[1.0], [0.0]]))
    assert_same([bias], [taeda.full((3,), 2.0)])


def test_constants_that_nobody_reads_go():
    weight = taeda.ones(1000)
    program = trace(lambda x: (x * 2, x + weight)[0], taeda.ones(1000))
    assert program.constants
    program.remove_dead_code()
    assert names(program) == ["aten::mul.Tensor"] and not program.constants


# --- what cannot be recorded ---


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda x: x.item(), "number"),
        (bool, "boolean"),
        (int, "integer"),
        (float, "float"),
        (lambda x: x.tolist(), "list"),
        (lambda x: x.numpy(), "NumPy array"),
        (lambda x: [0, 1, 2][x.long()], "index"),
    ],
)
def test_a_python_value_of_a_tensor_warns(read, what):
    with pytest.warns(taeda.jit.TracerWarning, match=f"Converting a tensor to a .*{what}"):
        trace(lambda x: [read(x), x][1], taeda.tensor(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(taeda.tensor(1.0))


def test_a_warning_that_is_an_error_ends_the_trace():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(taeda.jit.TracerWarning):
            trace(lambda x: x if x > 0 else -x, taeda.tensor(1.0))
    assert not taeda.jit.is_tracing()


def test_what_is_refused():
    x = taeda.ones(2)
    with pytest.raises(RuntimeError, match="being traced already"):
        trace(lambda x: trace(lambda x: x, x).run([x])[0], x)
    generator = taeda.Generator()
    with pytest.raises(NotImplementedError, match="generator"):
        trace(lambda x: taeda.rand(2, generator=generator), x)
    with pytest.raises(TypeError, match="results of a traced function"):
        trace(lambda x: {"x": x}, x)
    with pytest.raises(TypeError, match="inputs of a trace"):
        trace(lambda x: x, 3)
    with pytest.raises(RuntimeError, match="takes 1 inputs but got 2"):
        trace(lambda x: x, x).run([x, x])


def test_a_program_keeps_no_intermediate_tensors():
    model, x = mlp()
    program = trace(model, x)
    gc.collect()
    assert len(program.constants) == 4
    assert {id(t) for t in program.constants.values()} == {id(p) for p in model.parameters()}
