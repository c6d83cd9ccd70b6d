"""Reflected operators of subclasses: number - subclass and the like."""

import operator

import pytest

import taeda


class Logged(taeda.Tensor):
    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_number_on_the_left(name):
    x = taeda.tensor([1.0, 2.0, 4.0])
    op = getattr(operator, name)
    Logged.calls.clear()
    got = op(3, x.as_subclass(Logged))
    seen = list(Logged.calls)
    assert type(got) is Logged
    assert taeda.equal(got.as_subclass(taeda.Tensor), op(3, x))
    plain = {"add": "add", "mul": "mul"}
    assert seen == [plain.get(name, f"__r{name}__")]


@pytest.mark.parametrize("name", ["and", "or", "xor", "lshift", "rshift"])
def test_integer_on_the_left(name):
    x = taeda.tensor([1, 2, 3])
    op = getattr(operator, name + "_" if name in ("and", "or") else name)
    got = op(3, x.as_subclass(Logged))
    assert type(got) is Logged and got.tolist() == op(3, x).tolist()
