"""Hooks on tensors, nodes and saved tensors, against PyTorch."""

import gc

import pytest
from tests.marks import MADE_IN_BACKWARD

import taeda


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def hooks_run_in_order_and_replace(t):
    x = leaf(t, 2.0)
    h = x * 3
    log = []
    h.register_hook(lambda g: log.append(("a", g)) or g * 2)
    handle = h.register_hook(lambda g: log.append(("removed", g)))
    h.register_hook(lambda g: log.append(("b", g)))
    x.register_hook(lambda g: log.append(("leaf", g)) or g + 1)
    handle.remove()
    (h * h).sum().backward()
    return log, x.grad


@program
def hook_on_a_tensor_written_in_place(t):
    x = leaf(t, 2.0)
    h = x * 1
    log = []
    h.register_hook(lambda g: log.append(("before", g)))
    h.mul_(7)
    h.register_hook(lambda g: log.append(("after", g)))
    h.sum().backward()
    return log


@program
def the_dictionary_of_hooks_is_an_attribute(t):
    x = leaf(t, 2.0)
    log = [x._backward_hooks is None, leaf(t).detach()._backward_hooks is None]
    handle = x.register_hook(lambda g: g * 3)
    hooks = x._backward_hooks
    log += [type(hooks).__name__, list(hooks) == [handle.id]]
    y = x * 1
    y.register_hook(lambda g: g + 1)
    log += [len(y._backward_hooks), y._backward_hooks is not hooks]
    y.sum().backward()
    log += [x.grad.tolist()]
    x.grad = x._backward_hooks = None
    x.sum().backward()
    log += [x.grad.tolist(), x._backward_hooks is None]
    x._backward_hooks = hooks
    x.sum().backward()
    return [*log, x.grad.tolist(), x._backward_hooks is hooks]


@program
def node_hooks(t):
    x = leaf(t, 2.0)
    h = x * 3
    log = []
    h.grad_fn.register_prehook(lambda gs: log.append(("pre", gs)) or tuple(g * 2 for g in gs))
    h.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)) or (gi[0] + 1, *gi[1:]))
    h.register_hook(lambda g: log.append(("tensor", g)))
    h.sum().backward()
    return log, x.grad


@program
def post_accumulate(t):
    x = leaf(t, 2.0)
    log = []

    def hook(p):
        log.append((p is x, p.grad))
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * x).sum().backward()
    after = x.grad
    handle.remove()
    (x * x).sum().backward()
    return log, after, x.grad


@program
def leaf_hooks_run_under_grad_too(t):
    x = leaf(t, 2.0)
    log = []
    x.register_hook(lambda g: log.append(g) or g * 2)
    return t.autograd.grad((x * x).sum(), x), log


@program
def hook_registered_twice_runs_twice(t):
    x = leaf(t, 2.0)
    log = []
    hook = lambda g: log.append(g)  # noqa: E731
    x.register_hook(hook)
    x.register_hook(hook)
    x.sum().backward()
    return log


@program
def handle_as_context(t):
    x = leaf(t, 2.0)
    log = []
    with x.register_hook(lambda g: log.append(g)):
        x.sum().backward()
    x.sum().backward()
    return log


@program
def hook_that_changes_the_size(t):
    x = leaf(t, 2.0, 3.0)
    x.register_hook(lambda g: g[:1])
    x.sum().backward()


@program
def hook_that_returns_a_number(t):
    x = leaf(t, 2.0, 3.0)
    x.register_hook(lambda g: 1)
    x.sum().backward()


@program
def saved_tensor_hooks(t):
    log = []

    def pack(x):
        log.append(("pack", x.detach(), x.requires_grad))
        return x.detach().tolist(), x.dtype

    def unpack(packed):
        log.append("unpack")
        return t.tensor(packed[0], dtype=packed[1])

    x = leaf(t, 2.0, 3.0)
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    (g,) = t.autograd.grad(y.sum(), x)
    return g, len(log)


def seen_by_pack(t, compute):
    """What a pack hook that keeps what it gets sees, and what comes of it."""
    seen = []

    def pack(x):
        kind = type(x.grad_fn).__name__.removesuffix("_") if x.grad_fn is not None else None
        seen.append((x.requires_grad, x.is_leaf, kind, x.tolist()))
        return x

    x = leaf(t, 0.5, 0.3)
    with t.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        y = compute(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = t.autograd.grad(g.sum(), x)
    return sorted(seen, key=str), g, gg


@program
def pack_hooks_see_tensors_as_they_were_saved(t):
    return seen_by_pack(t, lambda x: (x * 2 * x).exp())


@program
def pack_hooks_see_what_a_function_saves(t):
    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            y = x * w
            ctx.save_for_backward(x, w, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, w, _ = ctx.saved_tensors
            return g * w, g * x

    return seen_by_pack(t, lambda x: Product.apply(x * 2, x))


@program
def saved_tensor_hooks_second_derivative(t):
    x = leaf(t, 0.5, 0.3)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v):
        y = (x.exp() * x).sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (gg,) = t.autograd.grad(g.sum(), x)
    return g, gg


@program
def save_on_cpu(t):
    x = leaf(t, 2.0, 3.0)
    with t.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    return x.grad


@program
def disabled_saved_tensor_hooks(t):
    with t.autograd.graph.disable_saved_tensors_hooks("not now"):
        with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
            pass


@program
def multi_grad_hook(t):
    x, y, z = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    log = []
    t.autograd.graph.register_multi_grad_hook((x, y, z), lambda gs: log.append(gs))
    (x * y).sum().backward()
    (x * y * z).sum().backward()
    return log


@program
def gradient_edges(t):
    x = leaf(t, 2.0)
    h = x * 3
    edge = t.autograd.graph.get_gradient_edge(h)
    y = (h * h).sum()
    return t.autograd.grad(y, edge), edge.output_nr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=MADE_IN_BACKWARD if name == "saved_tensor_hooks" else ())
        for name in PROGRAMS
    ],
)
def test_program(both, name):
    both(PROGRAMS[name])


def test_unpack_of_what_is_no_tensor():
    x = taeda.ones(2, requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: 5):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()


def test_hook_errors_leave_the_graph_usable():
    x = taeda.ones(2, requires_grad=True)
    y = (x * 3).sum()
    handle = x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [3, 3]


def test_hooks_and_attributes_survive_while_c_holds_the_tensor():
    x = taeda.ones(2, requires_grad=True)
    x.tag = "mine"
    log = []
    x.register_hook(lambda g: log.append(g.tolist()))
    y = (x * 2).sum()
    del x
    gc.collect()
    y.backward()
    assert log == [[2, 2]]
    leaf_node = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert leaf_node.variable.tag == "mine"


def test_saved_tensors_may_change_in_a_block_that_allows_it(both):
    def program(t):
        x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with t.autograd.graph.allow_mutation_on_saved_tensors():
            a = x.exp()
            b = a * x
            loss = (b**2).sum() + a.sin().sum()
            a.zero_()
            b.mul_(2)
            loss = loss + b.sum()
            loss.backward()
        return x.grad, a, b

    both(program)


def test_saved_tensors_may_change_through_views():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with taeda.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        loss = (y**2).sum()
        y[1] = 7.0
        loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_the_block_copies_only_what_is_written_while_it_is_saved(both):
    def program(t):
        with t.autograd.graph.allow_mutation_on_saved_tensors() as saved:
            x = t.ones(2, requires_grad=True).clone()
            y, z = x**2, x**2
            counts = [len(saved.cloned)]
            x.sin_()
            counts.append(len(saved.cloned))
            w = x**2
            t.cos(t.zeros(2), out=x.detach())
            counts.append(len(saved.cloned))
            for result in (y, z, w):
                result.sum().backward(retain_graph=True)
            del y, z, w, result
            counts.append(len(saved.cloned))
        return counts

    both(program)


def test_the_block_is_where_its_graph_may_be_walked(both):
    def program(t, nested=False):
        with t.autograd.graph.allow_mutation_on_saved_tensors():
            y = (t.ones(2, requires_grad=True) ** 2).sum()
            if nested:
                with t.autograd.graph.allow_mutation_on_saved_tensors():
                    pass
        y.backward()

    both(program, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context")
    both(lambda t: program(t, nested=True), "contexts cannot be nested")


def test_hooks_that_are_set_at_once_stay_where_nothing_requires_grad(both):
    def program(t):
        x, calls = t.ones(2), []
        x._backward_hooks = {}
        x._backward_hooks["one"] = lambda g: calls.append(g)
        (x * t.ones(2, requires_grad=True)).sum().backward()
        return list(x._backward_hooks), calls

    both(program)


@pytest.mark.parametrize("name", ["_grad_fn", "_backward_hooks", "data", "requires_grad"])
def test_what_a_tensor_is_made_of_cannot_be_deleted(both, name):
    both(lambda t: delattr(t.ones(2, requires_grad=True), name), "")


def test_without_the_block_a_changed_tensor_is_refused():
    x = taeda.ones(2, requires_grad=True)
    y = x.clone()
    z = y**2
    y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("leaf", [True, False])
def test_pack_hooks_may_not_write(leaf: bool) -> None:
    x = taeda.ones(2, requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t.detach().zero_(), lambda t: t):
        with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
            x.sin() if leaf else (x.detach() * 2).exp_().requires_grad_().pow(2)
