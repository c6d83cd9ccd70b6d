# ruff: noqa: E501
"""backward and grad, against PyTorch."""

import gc
import subprocess
import sys
import textwrap
import threading

import pytest

import taeda


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def test_chain_rule(both):
    def program(t):
        x, w = leaf(t, 1.0, -2.0, 3.0), leaf(t, 0.5, 0.25, -1.0)
        y = ((x * w).tanh() + x.exp() / (1 + w * w)).sum()
        y.backward()
        return y, x.grad, w.grad, y.grad_fn.name(), y.is_leaf, x.is_leaf

    both(program)


def test_broadcast_and_dtypes(both):
    def program(t):
        x = t.ones(3, 1, requires_grad=True)
        w = t.arange(4.0, dtype=t.float64).requires_grad_()
        (x * w + x.double()).sum().backward()
        return x.grad, w.grad

    both(program)


def test_linear_model(both):
    def program(t):
        t.manual_seed(0)
        x, w, b = t.randn(5, 3), t.randn(4, 3, requires_grad=True), t.randn(4, requires_grad=True)
        y = t.nn.functional.linear(x, w, b).relu()
        loss = (y - 1).pow(2).mean()
        loss.backward()
        return loss, w.grad, b.grad

    both(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda t: (leaf(t, 1.0, 2.0) * 2).backward(),
        lambda t: t.ones(2).sum().backward(),
        lambda t: leaf(t, 1.0, 2.0).mul(2).backward(t.ones(3, dtype=t.float64)),
        lambda t: t.autograd.grad(leaf(t, 1.0).sum(), [leaf(t, 1.0)]),
        lambda t: t.autograd.grad(leaf(t, 1.0).sum(), [t.ones(1)]),
        lambda t: (leaf(t, 1.0) * 2).requires_grad_(False),
        lambda t: setattr(leaf(t, 1.0), "grad", t.ones(2, dtype=t.float64)),
        lambda t: t.ones(2).retain_grad(),
        lambda t: t.ones(2).register_hook(print),
        lambda t: (leaf(t, 1.0) * 2).register_post_accumulate_grad_hook(print),
        lambda t: t.autograd.grad(leaf(t, 1.0).sum(), []),
        lambda t: leaf(t, 1.0).mul(2).sum().backward(inputs=[]),
    ],
)
def test_errors(both, program):
    result = both(program)
    assert result[0] == "error"


def test_second_backward(both):
    def program(t):
        x = leaf(t, 1.0, 2.0)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        first = x.grad.clone()
        try:
            y.backward()
        except RuntimeError as error:
            return first, str(error)[:130]

    both(program)


def test_grad_options(both):
    def program(t):
        x, y, z = leaf(t, 2.0), leaf(t, 3.0), leaf(t, 4.0)
        h = x * y
        out = (h * h).sum()
        a = t.autograd.grad(out, [h, x, z], retain_graph=True, allow_unused=True)
        b = t.autograd.grad(out, [z], retain_graph=True, materialize_grads=True)
        c = t.autograd.grad(
            [out, h], [x], [t.ones((), dtype=t.float64), t.full((1,), 5.0, dtype=t.float64)]
        )
        return a, b, c, x.grad

    both(program)


def test_backward_with_inputs(both):
    def program(t):
        x, y = leaf(t, 2.0), leaf(t, 3.0)
        h = x * y
        (h * h).sum().backward(inputs=[x, h])
        return x.grad, h.grad, y.grad

    both(program)


def test_higher_order(both):
    def program(t):
        x = leaf(t, 0.3, 0.7)
        y = (x.tanh() * x.exp()).sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (gg,) = t.autograd.grad(g.sum(), x, create_graph=True)
        (ggg,) = t.autograd.grad(gg.sum(), x)
        return g, gg, ggg

    both(program)


def test_create_graph_accumulates_into_grad(both):
    def program(t):
        x = leaf(t, 2.0)
        (x**3).sum().backward(create_graph=True)
        g = x.grad
        x.grad = None
        (g * g).sum().backward()
        return g, x.grad

    both(program)


def test_retain_grad(both):
    def program(t):
        x = leaf(t, 2.0)
        h = x * 3
        h.retain_grad()
        kept = h.retains_grad, x.retains_grad
        h.mul_(2)  # the gradient of the tensor as it is now
        (h * h).sum().backward()
        return kept, h.grad, x.grad

    both(program)


def test_reentrant(both):
    def program(t):
        class Inner(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gy):
                (x,) = ctx.saved_tensors
                with t.enable_grad():
                    z = x.detach().requires_grad_()
                    (z * z).sum().backward()
                return z.grad * gy

        x = leaf(t, 3.0)
        y = x
        for _ in range(5):
            y = Inner.apply(y)
        y.backward()
        return x.grad

    both(program)


def test_errors_name_the_node():
    class Bad(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gy):
            return gy[:1]

    x = taeda.ones(3, requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match=r"Function BadBackward returned an invalid gradient at index 0 - got \[1\] but expected shape compatible with \[3\]",
    ):
        Bad.apply(x).sum().backward()


def test_python_exceptions_pass_through():
    class Mine(Exception):
        pass

    def hook(grad):
        raise Mine("from the hook")

    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(Mine, match="from the hook"):
        y.sum().backward()
    assert taeda.is_grad_enabled()
    y = (x * 2).sum()  # the thread works on
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_threads():
    w = taeda.ones(4, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(50):
                y = w * 2
                y.register_hook(lambda g: g + 0)
                y.sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert w.grad.tolist() == [400.0] * 4


def test_grad_mode_is_per_thread():
    seen = []
    with taeda.no_grad():
        thread = threading.Thread(target=lambda: seen.append(taeda.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


DEEP = """
import threading, taeda
threading.stack_size(1 << 20)
def work():
    x = taeda.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1
    z = x
    for _ in range(300_000):
        z = z + x
    del y, z
    print("done")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_million_nodes_on_a_small_stack():
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DEEP)], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"


def test_nothing_leaks():
    def step():
        x = taeda.ones(3, requires_grad=True)
        h = x.exp()
        h.register_hook(lambda g: h * 0 + g)  # a cycle through the hook's closure
        y = (h * x).sum()
        y.backward(create_graph=True)
        x.grad = None
        w = taeda.ones(3, requires_grad=True)
        z = w * 1
        r = z * w
        z += r  # the node that saved z is reachable from z's new history
        return None

    step()
    gc.collect()
    before = taeda._C._live_autograd_nodes()
    for _ in range(20):
        step()
    gc.collect()
    assert taeda._C._live_autograd_nodes() <= before


def test_anomaly_mode_names_the_line():
    x = taeda.tensor([-1.0], requires_grad=True)
    with pytest.warns(UserWarning) as warned, taeda.autograd.detect_anomaly():
        y = x.sqrt()  # the culprit
        with pytest.raises(
            RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output.$"
        ):
            y.sum().backward()
    stacks = [str(w.message) for w in warned if "Traceback of forward call" in str(w.message)]
    assert len(stacks) == 1 and stacks[0].count("y = x.sqrt()  # the culprit") == 1


def test_anomaly_mode_names_the_mutation():
    x = taeda.ones(3, requires_grad=True)
    with taeda.autograd.set_detect_anomaly(True):
        h = x.exp()
        h.add_(1)  # the write
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
            h.sum().backward()
    (note,) = info.value.__notes__
    assert "h.add_(1)  # the write" in note and "last written by add_" in note


def test_leaf_grad_is_not_shared_between_leaves(both):
    def program(t):
        x, y = leaf(t, 1.0), leaf(t, 2.0)
        (x + y).sum().backward()
        x.grad.add_(5)
        return x.grad, y.grad

    both(program)


def test_complex(both):
    def program(t):
        z = t.tensor([1 + 2j, -0.5 + 1j], dtype=t.complex128, requires_grad=True)
        w = leaf(t, 2.0, 3.0)
        ((z * w).abs() ** 2).sum().backward()
        return z.grad, w.grad

    both(program)


def test_batched_grads(both):
    def program(t):
        x, w = leaf(t, 1.0, 2.0, 3.0), leaf(t, 0.5, -1.0, 2.0)
        y = x**2 * w
        rows = t.eye(3, dtype=t.float64)
        first = t.autograd.grad(y, (x, w), rows, is_grads_batched=True, retain_graph=True)
        several = t.autograd.grad(
            (y, y.sum()),
            x,
            (rows, t.ones(3, dtype=t.float64)),
            is_grads_batched=True,
            create_graph=True,
        )
        unused = t.autograd.grad(
            y, (x, leaf(t, 1.0)), rows, is_grads_batched=True, allow_unused=True
        )
        second = t.autograd.grad(several[0].sum(), x)
        return first, several, second, unused[0], unused[1] is None

    both(program)


def test_grad_and_backward_by_name(both):
    def program(t):
        x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
        named = t.autograd.grad((x * w).sum(), {"w": w, "x": x})
        t.autograd.backward((x * w).sum(), inputs={"w": w})
        return list(named), named["w"], named["x"], w.grad, x.grad is None

    both(program)


def test_batched_grads_check_the_batch_dimension():
    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="first dimension of each grad_output"):
        taeda.autograd.grad(x * 2, x, taeda.ones(3, 3), is_grads_batched=True)
    with pytest.raises(TypeError, match="must be a dict"):
        import types

        taeda.autograd.grad((x * 2).sum(), types.MappingProxyType({"x": x}))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("dim", range(4))
def test_unbind_of_permuted_and_expanded_tensors(order, dim):
    """The gradient lies in memory as what was unbound does."""
    for x in (taeda.randn(2, 3, 4, 5), taeda.randn(2, 1, 4, 5).expand(2, 3, 4, 5)):
        y = x.permute(order).requires_grad_()
        weights = taeda.randn(y.shape)
        loss = sum((a * a * b).sum() for a, b in zip(y.unbind(dim), weights.unbind(dim)))
        (g,) = taeda.autograd.grad(loss, y, create_graph=True)
        assert taeda.allclose(g, 2 * y * weights)
        (h,) = taeda.autograd.grad((g * g).sum(), y)
        assert taeda.allclose(h, 8 * y * weights * weights)
        if x.is_contiguous():
            assert g.stride() == y.stride()


def test_materialized_zeros_can_be_differentiated_again():
    x = taeda.tensor(0.5, requires_grad=True)
    a = taeda.tensor(2.0, requires_grad=True)
    (first,) = taeda.autograd.grad(x * a, x, create_graph=True)
    (second,) = taeda.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second.item() == 0
    assert second.requires_grad
    (third,) = taeda.autograd.grad(second, x, materialize_grads=True)
    assert third.item() == 0
    assert not third.requires_grad


WARNED = """
import sys, warnings
import taeda as torch

x = torch.ones(2, requires_grad=True)
for always in (False, False, True):
    torch.set_warn_always(always)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (x * x).sum().backward(create_graph=True)
        torch.autograd.grad((x * x).sum(), x, create_graph=True)
        (x * x).sum().backward()
    x.grad = None
    print([str(w.message).partition(" will")[0] for w in caught])
"""


def test_backward_that_creates_a_graph_warns_of_the_cycle_once():
    said = subprocess.run([sys.executable, "-c", WARNED], capture_output=True, text=True)
    warning = ["Using backward() with create_graph=True"]
    assert said.stdout.splitlines() == [str(warning), "[]", str(warning)], said.stderr
