"""Backward passes inside one another: recomputation in a custom backward, and any depth of it."""

import contextvars
import os
import signal
import time

import pytest

import taeda


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def region(t, x, w):
    return ((x * w).tanh() * w).exp()


def run_and_save(ctx, run, *inputs):
    ctx.run = run
    ctx.save_for_backward(*inputs)
    return run(*inputs)


def by_backward(t):
    """The checkpoint that most repositories copy: detach, recompute, backward, read grad."""

    class Checkpoint(t.autograd.Function):
        @staticmethod
        def forward(ctx, run, *inputs):
            ctx.run = run
            ctx.save_for_backward(*inputs)
            with t.no_grad():
                return run(*inputs)

        @staticmethod
        def backward(ctx, gy):
            inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
            with t.enable_grad():
                y = ctx.run(*inputs)
            t.autograd.backward(y, gy)
            return None, *(x.grad for x in inputs)

    return Checkpoint


def by_grad(t):
    class Checkpoint(t.autograd.Function):
        forward = staticmethod(run_and_save)

        @staticmethod
        def backward(ctx, gy):
            wanted = [x for x in ctx.saved_tensors if x.requires_grad]
            with t.enable_grad():
                copies = [x.detach().requires_grad_() for x in ctx.saved_tensors]
                y = ctx.run(*copies)
            grads = t.autograd.grad(y, copies, gy)
            assert len(wanted) == len(grads)
            return None, *grads

    return Checkpoint


def through_history(t):
    """Differentiates by the saved tensors themselves, which have a history of their own."""

    class Checkpoint(t.autograd.Function):
        forward = staticmethod(run_and_save)

        @staticmethod
        def backward(ctx, gy):
            saved = ctx.saved_tensors
            with t.enable_grad():
                y = ctx.run(*saved)
            return None, *t.autograd.grad(y, saved, gy, retain_graph=True)

    return Checkpoint


def from_the_result(t):
    """Saves the result alone, as reversible networks do, and inverts it."""

    class Invert(t.autograd.Function):
        @staticmethod
        def forward(ctx, run, x, w):
            y = run(x, w)
            ctx.run = run
            ctx.save_for_backward(y, w)
            return y

        @staticmethod
        def backward(ctx, gy):
            y, w = ctx.saved_tensors
            assert y.requires_grad and not y.is_leaf
            x = ((y.log() / w).atanh() / w).detach().requires_grad_()
            again = w.detach().requires_grad_(w.requires_grad)
            with t.enable_grad():
                ctx.run(x, again).backward(gy)
            return None, x.grad, again.grad

    return Invert


RECOMPUTING = [by_backward, by_grad, through_history, from_the_result]


@pytest.mark.parametrize("make", RECOMPUTING)
def test_recomputation_between_other_layers(both, make):
    def program(t):
        x, w = leaf(t, 0.5, 1.0), leaf(t, 0.7, -0.3)
        y = make(t).apply(lambda *a: region(t, *a), x * 1, w.exp())
        (y * y).sum().backward()
        return x.grad, w.grad

    x, w = leaf(taeda, 0.5, 1.0), leaf(taeda, 0.7, -0.3)
    y = region(taeda, x * 1, w.exp())
    (y * y).sum().backward()
    result = both(program)
    assert result[0][-1] == pytest.approx(x.grad.tolist())
    assert result[1][-1] == pytest.approx(w.grad.tolist())


@pytest.mark.parametrize("make", RECOMPUTING)
def test_recomputation_inside_recomputation(both, make):
    def program(t):
        function = make(t)
        x, w = leaf(t, 0.5, 1.0), leaf(t, 0.7, -0.3)
        inner = lambda *a: region(t, *a)  # noqa: E731
        outer = lambda *a: function.apply(inner, a[0].sigmoid(), a[1])  # noqa: E731
        y = by_backward(t).apply(outer, x * 1, w.exp())
        (y * y).sum().backward()
        return x.grad, w.grad

    both(program)


def test_what_saved_tensors_are(both):
    def program(t):
        seen = []

        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, c, d):
                y = a * b
                ctx.save_for_backward(a, b, c, d, y)
                return y

            @staticmethod
            def backward(ctx, gy):
                for s in ctx.saved_tensors:
                    name = s.grad_fn.name() if s.grad_fn is not None else None
                    seen.append((s.requires_grad, s.is_leaf, name and name.split("Backward")[0]))
                assert ctx.saved_tensors[0] is a
                return gy, gy, None, None

        a, c = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
        F.apply(a, a.exp(), c, c * 2).sum().backward()
        return seen

    both(program)


def test_gradients_have_no_history(both):
    """A backward that hands on what it saved, without create_graph."""

    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.sum()

            @staticmethod
            def backward(ctx, gy):
                return ctx.saved_tensors[0]

        x = leaf(t, 1.0, 2.0)
        F.apply(x * 3).backward()
        return x.grad, x.grad.requires_grad, x.grad.is_leaf

    both(program)


def test_reentrant_checkpoint_of_what_has_a_history(both):
    def program(t):
        a, w = leaf(t, 0.5, 1.0), leaf(t, 2.0, -1.0)
        call = lambda x, w: (x * w).sin()  # noqa: E731
        t.utils.checkpoint.checkpoint(call, a * 1, w, use_reentrant=True).sum().backward()
        return a.grad, w.grad

    both(program)


# --- depth ---


def descend(at_bottom, look=None):
    """A function whose backward runs backward through itself, `x` times."""

    class Deep(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with taeda.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, gx):
            if look is not None:
                look()
            if ctx.x < 0:
                at_bottom()
            else:
                with taeda.enable_grad():
                    Deep.apply(ctx.x).sum().backward()
            return gx

    return Deep.apply


@pytest.mark.parametrize("depth", [250, 3000, 20000])
def test_depth(depth):
    alive = taeda._C._live_autograd_nodes()
    reached = []
    x = taeda.tensor(float(depth), requires_grad=True)
    descend(lambda: reached.append(True))(x).sum().backward()
    assert reached and x.grad.item() == 1
    assert taeda._C._live_autograd_nodes() <= alive + 1  # x's accumulator


def test_an_exception_crosses_the_threads():
    def fail():
        raise KeyError("at the bottom")

    x = taeda.tensor(300.0, requires_grad=True)
    with pytest.raises(KeyError, match="at the bottom"):
        descend(fail)(x).sum().backward()
    y = taeda.tensor(2.0, requires_grad=True)
    (y * y).backward()
    assert y.grad.item() == 4


@pytest.fixture
def interruptible():
    """A process that a shell starts in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_deep_backward():
    def loop():
        os.kill(os.getpid(), signal.SIGINT)
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            pass

    x = taeda.tensor(300.0, requires_grad=True)
    with pytest.raises(KeyboardInterrupt):
        descend(loop)(x).sum().backward()


class Stop(Exception):
    pass


@pytest.fixture
def alarm():
    """A function that makes Stop come soon, on the main thread."""

    def stop(*_):
        raise Stop("from the handler")

    before = signal.signal(signal.SIGALRM, stop)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.signal(signal.SIGALRM, before)


def endless():
    taeda.ones(1).expand(2**40).sum()


@pytest.mark.parametrize("depth", [70, 300])
def test_a_signal_ends_an_operator_at_the_bottom(alarm, depth):
    def compute():
        alarm()
        endless()

    x = taeda.tensor(float(depth), requires_grad=True)
    with pytest.raises(Stop, match="from the handler"):
        descend(compute)(x).sum().backward()


def test_what_is_caught_at_the_bottom_does_not_come_up(alarm):
    caught = []

    def compute():
        alarm()
        try:
            endless()
        except Stop:
            caught.append(True)

    x = taeda.tensor(300.0, requires_grad=True)
    descend(compute)(x).sum().backward()
    assert caught == [True] and x.grad.item() == 1


def test_a_second_signal_counts_after_the_first_was_caught(alarm):
    def compute():
        alarm()
        try:
            endless()
        except Stop:
            alarm()
        endless()

    x = taeda.tensor(300.0, requires_grad=True)
    with pytest.raises(Stop):
        descend(compute)(x).sum().backward()


def test_the_modes_go_along():
    variable = contextvars.ContextVar("variable", default="outside")
    seen = set()

    class Mode(taeda.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def look():
        node = taeda._C._current_autograd_node()
        seen.add(
            (
                variable.get(),
                taeda.is_grad_enabled(),
                taeda.is_autocast_enabled("cpu"),
                taeda.get_autocast_dtype("cpu"),
                str(taeda.get_default_device()),
                taeda.ones(1).device.type,
                taeda._C._has_torch_function(()),
                taeda._C._dual_level() != 0,
                taeda._C._is_torch_function_enabled(),
                node.name(),
            )
        )

    x = taeda.tensor(200.0, requires_grad=True)
    variable.set("inside")
    with (
        taeda.autocast("cpu", dtype=taeda.float16),
        taeda.autograd.forward_ad.dual_level(),
        Mode(),
    ):
        descend(look, look)(x).sum().backward()
    assert len(seen) == 1 and next(iter(seen))[0] == "inside"


def test_saved_tensor_hooks_go_along():
    seen = []
    hooks = taeda.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t)

    def record():
        before = len(seen)
        with taeda.enable_grad():
            taeda.ones(2, requires_grad=True).exp()
        assert len(seen) == before + 1

    x = taeda.tensor(100.0, requires_grad=True)
    with hooks:
        descend(record)(x).sum().backward()


def test_operators_recorded_deeper_come_later():
    numbers = []

    def look():
        with taeda.enable_grad():
            numbers.append(taeda.ones(1, requires_grad=True).exp().grad_fn._sequence_nr())

    x = taeda.tensor(150.0, requires_grad=True)
    descend(look, look)(x).sum().backward()
    assert numbers == sorted(numbers)
