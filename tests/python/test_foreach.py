"""torch._foreach_*: every operator and form against PyTorch's, in place too."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

NAMES = sorted(name for name in dir(torch) if name.startswith("_foreach"))


def tensors(library: Any, dtype: str = "float32", flipped: bool = False) -> list:
    values = [np.array([[0.25, 0.5], [0.75, 1.25]]), np.full(3, 2.5)]
    made = [library.tensor(v.tolist(), dtype=library.float32) for v in values]
    return [(x.flip(0) if flipped else x).to(getattr(library, dtype)) for x in made]


# Arguments after the first, as functions of the library.
FORMS: list[tuple] = [
    (),
    (2,),
    (2.5,),
    ([1.0, 2.0],),
    ((1, 2),),
    ([1.0],),
    (lambda t: t.tensor(2.0),),
    (lambda t: t.tensor([1.0, 2.0]),),
    (lambda t: tensors(t, flipped=True),),
    (lambda t: tensors(t, flipped=True), 3),
    (lambda t: tensors(t, flipped=True), 0.5),
    (lambda t: tensors(t, flipped=True), [0.1, 0.2]),
    (lambda t: tensors(t, flipped=True), lambda t: tensors(t)),
    (lambda t: tensors(t, flipped=True), lambda t: tensors(t), 2),
    (lambda t: tensors(t, flipped=True), lambda t: tensors(t), [1.0, 2.0]),
    (lambda t: tensors(t, flipped=True), lambda t: tensors(t), lambda t: t.tensor([1.0, 2.0])),
    ([],),
]


def outcome(library: Any, name: str, dtype: str, form: tuple) -> Any:
    x = tensors(library, dtype)
    try:
        result = getattr(library, name)(x, *(a(library) if callable(a) else a for a in form))
    except Exception as error:
        return type(error).__name__
    return [
        (str(t.dtype).split(".")[1], t.to(library.complex128).numpy())
        for t in (x if name.endswith("_") else result)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_every_form_does_what_pytorchs_does(name: str, dtype: str) -> None:
    for form in FORMS:
        ours, theirs = (outcome(t, name, dtype, form) for t in (taeda, torch))
        if isinstance(ours, str) or isinstance(theirs, str):
            assert ours == theirs, form
            continue
        for (kind, mine), (expected_kind, expected) in zip(ours, theirs, strict=True):
            assert kind == expected_kind, form
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6, err_msg=str(form))


def test_arguments_by_name_and_alpha() -> None:
    x, y = tensors(taeda), tensors(taeda, flipped=True)
    for mine, a, b in zip(taeda._foreach_add(x, other=y, alpha=2), x, y, strict=True):
        np.testing.assert_allclose(mine.numpy(), a.numpy() + 2 * b.numpy())
    powers = taeda._foreach_pow(2.0, x)
    np.testing.assert_allclose(powers[1].numpy(), 2.0 ** x[1].numpy(), rtol=1e-6)


def test_a_wrong_form_names_what_was_given() -> None:
    with pytest.raises(TypeError, match=r"_foreach_abs\(\) received .* got \(list, int\)"):
        taeda._foreach_abs(tensors(taeda), 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t._foreach_mul([t.ones(2)], np.float32(2.5)),
        lambda t: t._foreach_mul([t.ones(2, dtype=t.int64)], np.float32(2.5)),
        lambda t: t._foreach_add([t.ones(2, dtype=t.int64)], np.int64(2)),
        lambda t: t._foreach_add([t.ones(2), t.ones(1)], [np.int64(2), np.float16(0.5)]),
        lambda t: t._foreach_mul([t.ones(2)], np.bool_(True)),
        lambda t: t._foreach_mul([t.ones(2)], scalar=np.uint8(3)),
        lambda t: t._foreach_pow(np.float32(2), [t.ones(2)]),
        lambda t: t._foreach_addcmul([t.ones(2)], [t.ones(2)], [t.ones(2)], value=np.float32(3)),
        lambda t: t._foreach_lerp([t.zeros(2)], [t.ones(2)], np.float32(0.5)),
        lambda t: t._foreach_add([t.ones(2)], [t.ones(2)], alpha=np.float32(2)),
    ],
)
def test_numbers_of_numpy_are_numbers(call):
    for found, expected in zip(call(taeda), call(torch), strict=True):
        assert str(found.dtype) == str(expected.dtype)
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("value", [np.array(2.0), np.array([2.0]), [np.array(2.0)], "2", None])
def test_arrays_and_texts_are_no_numbers(value):
    for t in (torch, taeda):
        with pytest.raises(TypeError):
            t._foreach_mul([t.ones(2)], value)


# --- as a TorchDispatchMode sees them ---


def seen(library: Any, call: Any) -> list[str]:
    calls: list[str] = []

    class Log(import_module(f"{library.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        try:
            call()
        except Exception as error:
            calls.append(type(error).__name__)
    return calls


@pytest.mark.parametrize("name", NAMES)
def test_a_mode_sees_one_operator_on_lists(name: str) -> None:
    for form in (form for form in FORMS if form != ([],)):
        found = []
        for library in (taeda, torch):
            x = tensors(library)
            args = [a(library) if callable(a) else a for a in form]
            found.append(seen(library, lambda f=getattr(library, name), x=x, a=args: f(x, *a)))
        ours, theirs = ([c for c in each if "_foreach" in c] for each in found)
        assert ours == theirs, form


def test_operators_on_lists_have_pytorchs_schemas() -> None:
    compared = 0
    for name in NAMES:
        ours, theirs = getattr(taeda.ops.aten, name, None), getattr(torch.ops.aten, name)
        for overload in ours.overloads() if ours else ():
            mine, expected = (str(getattr(p, overload)._schema) for p in (ours, theirs))
            assert mine == expected.removesuffix(" self_out")
            compared += 1
    assert compared > 130


def test_operators_on_lists_are_differentiated() -> None:
    x = [t.requires_grad_() for t in tensors(taeda, "float64")]
    sums: list[Any] = []
    assert seen(taeda, lambda: sums.extend(taeda._foreach_mul(x, x)))[0] == "aten.mul.Tensor"
    taeda.ops.aten._foreach_mul.List(sums, x)[0].sum().backward()
    np.testing.assert_allclose(x[0].grad.numpy(), 3 * x[0].detach().numpy() ** 2)
    for t in x:
        t.grad = None
    with taeda.no_grad():
        assert seen(taeda, lambda: taeda._foreach_mul(x, x)) == ["aten._foreach_mul.List"]


def test_operators_on_lists_carry_tangents() -> None:
    from taeda.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    def square(x: Any) -> Any:
        with Mode():
            return taeda._foreach_mul([x], [x])[0]

    x = taeda.tensor([2.0, 3.0])
    assert taeda.func.jvp(square, (x,), (taeda.ones(2),))[1].tolist() == [4.0, 6.0]
    assert taeda.vmap(square)(x).tolist() == [4.0, 9.0]


@pytest.mark.parametrize("kind", [list, tuple])
def test_what_is_written_in_place_is_given_back(kind: type) -> None:
    for library in (torch, taeda):
        given = kind(tensors(library))
        assert library._foreach_abs_(given) is given
        assert library._foreach_add_(given, 1) is given
