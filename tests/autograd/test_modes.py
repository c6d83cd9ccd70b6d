"""no_grad and its kin, against PyTorch."""

import pytest

import taeda

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def contexts(t):
    out = [t.is_grad_enabled()]
    with t.no_grad():
        out.append(t.is_grad_enabled())
        with t.enable_grad():
            out.append(t.is_grad_enabled())
        with t.set_grad_enabled(True):
            out.append(t.is_grad_enabled())
        out.append(t.is_grad_enabled())
        with t.inference_mode():
            out.append((t.is_grad_enabled(), t.is_inference_mode_enabled()))
            with t.inference_mode(False):
                out.append((t.is_grad_enabled(), t.is_inference_mode_enabled()))
        out.append((t.is_grad_enabled(), t.is_inference_mode_enabled()))
    out.append(t.is_grad_enabled())
    return out


@program
def decorators(t):
    @t.no_grad()
    def a(x):
        return (x * 2).requires_grad

    @t.no_grad
    def b(x):
        return (x * 2).requires_grad

    @t.inference_mode()
    def c(x):
        return (x * 2).is_inference()

    @t.enable_grad()
    def d(x):
        return (x * 2).requires_grad

    x = t.ones(1, requires_grad=True)
    with t.no_grad():
        inside = d(x)
    return a(x), b(x), c(x), inside, a.__name__, t.is_grad_enabled()


@program
def generators(t):
    @t.no_grad()
    def numbers():
        received = []
        try:
            while True:
                received.append((yield t.is_grad_enabled()))
                if len(received) == 3:
                    return received
        except ValueError:
            yield "caught", t.is_grad_enabled()

    g = numbers()
    out = [next(g), t.is_grad_enabled(), g.send(5), t.is_grad_enabled()]
    out.append(g.throw(ValueError("x")))
    out.append(t.is_grad_enabled())
    h = numbers()
    next(h)
    h.send(1)
    h.send(2)
    try:
        h.send(3)
    except StopIteration as stop:
        out.append(stop.value)
    return out


@program
def set_grad_enabled_as_a_function_and_decorator(t):
    out = []
    t.set_grad_enabled(False)
    out.append(t.is_grad_enabled())
    t.set_grad_enabled(True)

    @t.set_grad_enabled(False)
    def f():
        return t.is_grad_enabled()

    out += [t.is_grad_enabled(), f(), t.is_grad_enabled()]
    return out


@program
def exceptions_restore(t):
    try:
        with t.no_grad():
            raise ValueError
    except ValueError:
        pass
    return t.is_grad_enabled()


@program
def factory_under_no_grad(t):
    with t.no_grad():
        x = t.ones(2, requires_grad=True)
        y = x * 2
    return x.requires_grad, y.requires_grad, y.is_leaf


@program
def inference_views(t):
    x = t.ones(2, requires_grad=True)
    with t.inference_mode():
        i = t.ones(2)
        return i.is_inference(), x.view(-1).is_inference(), i.view(-1).is_inference(), i.add_(1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(both, name):
    both(PROGRAMS[name])


def test_set_grad_enabled_wants_a_bool():
    with pytest.raises(TypeError):
        taeda.set_grad_enabled(1)
