"""What a hook may ask of the backward pass that runs it, against PyTorch."""

import gc
import weakref

import pytest

import taeda


def test_passes_are_numbered_one_after_the_other(both):
    def program(t):
        ids = []
        x = t.tensor(1.0, requires_grad=True).clone()
        x.register_hook(lambda g: ids.append(t._C._current_graph_task_id()))
        for _ in range(3):
            x.backward(retain_graph=True)
        return [i - ids[0] for i in ids], t._C._current_graph_task_id()

    both(program)


def test_the_order_of_the_steps_is_known_beforehand(both):
    def program(t, threads=False):
        found = []
        x = t.tensor([1.0, 2.0], requires_grad=True)
        w = t.tensor([3.0, 4.0], requires_grad=True)
        y = (x * w).sin() + x.exp()
        y.register_hook(lambda g: found.append(t._C._current_graph_task_execution_order()))
        with t.autograd.set_multithreading_enabled(threads):
            y.backward(t.ones(2))
        return [[node.name() for node in order] for order in found]

    names = both(program)
    assert len(names[0]) == 6
    both(
        lambda t: program(t, threads=True),
        "expects the current backward to be executed with multithreading disabled",
    )
    both(
        lambda t: t._C._current_graph_task_execution_order(),
        "should only be called during the backward pass",
    )


def test_steps_that_the_pass_reaches(both):
    def program(t):
        x, w = (t.ones(2, requires_grad=True) for _ in range(2))
        y = x * w
        aside = y.cos()
        leaves = [v.view_as(v).grad_fn.next_functions[0][0] for v in (x, w)]
        asked = [*leaves, y.grad_fn, aside.grad_fn]
        found = []

        def look(g):
            found.append([t._C._will_engine_execute_node(node) for node in asked])

        y.register_hook(look)
        t.autograd.backward(y.sum(), inputs=(x, y), retain_graph=True)
        y.sum().backward(retain_graph=True)
        return found

    both(program)
    both(lambda t: t._C._will_engine_execute_node(t.ones(1)), "expects an grad_fn")


def test_a_multi_grad_hook_waits_for_what_the_pass_reaches(both):
    def program(t):
        a, b, c = (t.ones(2, requires_grad=True) for _ in range(3))
        calls = []
        t.autograd.graph.register_multi_grad_hook(
            (a, b, c), lambda gs: calls.append([g is not None for g in gs])
        )
        y = (b * c).sum()
        y.backward(inputs=(b, c), retain_graph=True)
        y.backward(inputs=(a,), retain_graph=True)
        y.backward(inputs=(a, c), retain_graph=True)
        return calls

    both(program)


def test_a_multi_grad_hook_outlives_a_pass_that_failed():
    class Failing(taeda.autograd.Function):
        broken = True

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gy):
            if Failing.broken:
                raise RuntimeError("broken")
            return gy

    a, b = (taeda.ones(2, requires_grad=True) for _ in range(2))
    calls = []
    taeda.autograd.graph.register_multi_grad_hook((a, b), calls.append)
    y = (Failing.apply(a) * b).sum()
    with pytest.raises(RuntimeError, match="broken"):
        y.backward(retain_graph=True)
    assert not calls
    Failing.broken = False
    y.backward()
    assert len(calls) == 1 and all(g is not None for g in calls[0])


def test_a_multi_grad_hook_keeps_no_tensor_alive():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    taeda.autograd.graph.register_multi_grad_hook((x, y), lambda gs: None)
    refs = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_hooks_see_none_where_no_gradient_arrives(both):
    def program(t):
        x = t.arange(3.0, requires_grad=True)
        first, second, _ = x.unbind()
        seen = []
        first.register_hook(seen.append)
        second.backward()
        first.backward()
        return seen, x.grad

    both(program)


def test_prehooks_of_a_step_run_where_its_gradient_is_accumulated(both):
    def program(t):
        log = []
        a = t.tensor(1.0, requires_grad=True)
        b = a.clone()
        b.grad_fn.register_prehook(lambda gs: log.append("step") or tuple(2 * g for g in gs))
        b.register_hook(lambda g: log.append("tensor") or 3 * g)
        b.sum().backward(inputs=(b,))
        return log, b.grad, a.grad

    both(program)


def test_steps_of_ones_own_raise_or_lose_the_gradient(both):
    def program(t, message="no way back"):
        x = t.ones(2, requires_grad=True)
        safe = t._C._functions.DelayedError(message, 1)(x)
        (g,) = t.autograd.grad(safe.sum(), safe, retain_graph=True)
        nothing = t._C._functions.UndefinedGrad()(x * 2)
        nothing.sum().backward()
        return safe.grad_fn.name(), g, x.grad, t.autograd.grad(safe.sum(), x)

    both(program, "no way back")


def test_nodes_answer_isinstance_without_a_base_class(both):
    def program(t):
        kind = t.autograd.graph.Node
        x = t.ones(2, requires_grad=True)

        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                F.context = isinstance(ctx, kind)
                return x * 2

            @staticmethod
            def backward(ctx, gy):
                return 2 * gy

        y, z = x.exp(), F.apply(x)
        step = y.grad_fn.next_functions[0][0]
        return (
            [isinstance(n, kind) for n in (y.grad_fn, z.grad_fn, step, None, 1)],
            [issubclass(c, kind) for c in (t._C._functions.AccumulateGrad, kind, int)],
            isinstance(step, t._C._functions.AccumulateGrad),
            kind in type(y.grad_fn).mro(),
            F.context,
            z.grad_fn.__class__ is F._backward_cls,
            step.name(),
        )

    both(program)


@pytest.mark.parametrize("count", [0, 2])
def test_a_step_wants_all_of_its_gradients(both, count):
    def program(t):
        y = t.ones(1, requires_grad=True) ** 2
        return y.grad_fn(*[t.ones(1)] * count)

    both(program, f"got {count} instead")


def test_a_failure_in_anomaly_mode_names_each_pass_in_a_warning(recwarn):
    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="returned nan values"):
        with taeda.autograd.detect_anomaly():
            (g,) = taeda.autograd.grad(x.sqrt().sum(), x, create_graph=True)
            ((g - g) / (g - g)).sum().sqrt().backward()
    texts = [str(w.message) for w in recwarn]
    assert any(text.startswith("Error detected in") for text in texts)


def test_inference_views_of_views_say_which_block_they_come_from(both):
    def program(t, mode="no_grad"):
        x = t.zeros(2)
        with getattr(t, mode)():
            y = x.view(2)
        y.requires_grad_(True)
        z = y.view(2)
        z /= 2

    both(program, "is a view of a view which was created in no_grad mode")
    both(lambda t: program(t, "inference_mode"), "inside the inference_mode block")


def test_a_view_that_a_function_returned_is_no_base_for_writes(both):
    def program(t):
        class Viewing(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)

            @staticmethod
            def backward(ctx, gy):
                return gy

        view = Viewing.apply(t.ones(2))
        view += t.ones(2, requires_grad=True)

    both(program, "This view was created inside a custom Function")
