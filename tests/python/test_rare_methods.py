"""Methods of Tensor that programs seldom call, against PyTorch."""

import subprocess
import sys
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")


def outcome(call, package):
    """What a call gives, and its warnings; or the type and the start of the text that it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call(package)
        except Exception as error:
            return type(error).__name__, str(error)[:70]
    if hasattr(found, "dtype"):
        found = str(found.dtype).partition(".")[2], found.tolist()
    return found, [str(w.message) for w in caught]


def matrix(t):
    return t.tensor([[1.5, -2.0, 3.0], [0.25, 4.0, -1.0]])


CALLS = [
    lambda t: matrix(t).apply_(lambda x: "text"),
    lambda t: matrix(t).apply_(lambda x: None),
    lambda t: matrix(t).apply_(lambda x: t.tensor(x) * 2),
    lambda t: matrix(t).requires_grad_().apply_(lambda x: x),
    lambda t: matrix(t).map_(matrix(t), lambda x, y: "text"),
    lambda t: matrix(t).map_(t.ones(3, requires_grad=True), lambda x, y: x + y),
    lambda t: matrix(t).map2_(t.ones(3), t.ones(1, requires_grad=True), lambda x, y, z: x),
    lambda t: matrix(t).map2_(t.ones(3), t.ones(1), lambda x, y, z: x + y * z),
    lambda t: matrix(t)._fix_weakref(),
    lambda t: t.quint8.is_signed and None,
    lambda t: matrix(t).is_same_size(matrix(t)),
    lambda t: t.set_deterministic_debug_mode(3),
    lambda t: matrix(t).resize(3, 2),
    lambda t: matrix(t).t().resize(6),
    lambda t: matrix(t).resize(5),
    lambda t: matrix(t).resize_as(t.ones(6)),
    lambda t: matrix(t).reinforce(1),
    lambda t: matrix(t).solve(1),
    lambda t: matrix(t).lstsq(1),
    lambda t: matrix(t).module_load(t.ones(2, 3)),
    lambda t: matrix(t).module_load(t.ones(2), assign=True),
    lambda t: matrix(t).float_power_(2),
    lambda t: t.tensor([2.0, 3.0], dtype=t.float64).float_power_(3),
    lambda t: matrix(t).const_data_ptr() > 0,
    lambda t: (matrix(t) > 0)._is_all_true(),
    lambda t: (matrix(t) > 0)._is_any_true(),
    lambda t: t.hash_tensor(matrix(t)),
    lambda t: matrix(t).hash_tensor(1),
    lambda t: matrix(t).hash_tensor(dim=[0], keepdim=True),
    lambda t: t.hash_tensor(matrix(t), (0, -1), keepdim=True),
    lambda t: t.hash_tensor(t.tensor(2.0)),
    lambda t: t.hash_tensor(t.tensor([3, -200, 7])),
    lambda t: t.hash_tensor(t.tensor([[True, False], [True, True]]), 1),
    lambda t: t.hash_tensor(matrix(t).half()),
    lambda t: t.hash_tensor(t.zeros(2, 0, 3), 0),
    lambda t: t.hash_tensor(t.zeros(2, 0), 1),
    lambda t: t.hash_tensor(t.zeros(0)),
    lambda t: t.hash_tensor(matrix(t), 2),
    lambda t: t.hash_tensor(matrix(t), mode=1),
    lambda t: t.hash_tensor(matrix(t) + 1j),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_results_and_errors_are_pytorchs(number):
    assert outcome(CALLS[number], taeda) == outcome(CALLS[number], torch)


def test_polygamma_in_place():
    x, y = (t.tensor([0.5, 2.0], dtype=t.float64) for t in (taeda, torch))
    assert x.polygamma_(1) is x
    assert x.tolist() == pytest.approx(y.polygamma_(1).tolist())


@pytest.mark.parametrize("call", [lambda x: x.polygamma_(1), lambda x: x.float_power_(3)])
def test_backward_reads_what_was_there_before_the_write(call):
    found = []
    for lib in (taeda, pytest.importorskip("torch")):
        leaf = lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True)
        call(leaf * 1).sum().backward()
        found.append(leaf.grad.tolist())
    assert found[0] == pytest.approx(found[1])


def test_resizing_has_a_gradient():
    grads = []
    for t in (taeda, torch):
        x = matrix(t).requires_grad_()
        with pytest.warns(UserWarning, match="non-inplace resize"):
            (x.resize(6) * t.arange(6.0)).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_devices_that_are_not_there():
    for name in ("xpu", "mtia"):
        with pytest.raises(RuntimeError, match=name):
            getattr(taeda.ones(1), name)()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_of_the_same_sizes():
    def outcomes(t):
        x, y, z = (
            t.nested.nested_tensor([t.ones(n, 4) for n in rows])
            for rows in ((2, 3), (2, 3), (2, 2))
        )
        calls = [(x, y), (x, z), (x, t.ones(2)), (t.ones(2), x)]
        return [outcome(lambda _, pair=pair: pair[0].is_same_size(pair[1]), t) for pair in calls]

    assert outcomes(taeda) == outcomes(torch)


def test_determinism_is_asked_for_by_bools():
    for t in (taeda, torch):
        for arguments, options in ((("yes",), {}), ((1,), {}), ((False,), {"warn_only": 1})):
            with pytest.raises(TypeError, match="must be bool, not"):
                t.use_deterministic_algorithms(*arguments, **options)
    assert not taeda.are_deterministic_algorithms_enabled()


def test_storages_have_numbers_of_their_own():
    x, y = taeda.ones(3), taeda.ones(3)
    assert x[1:].storage()._cdata == x.untyped_storage()._cdata != y.untyped_storage()._cdata
    y.set_(x)
    assert y.storage()._cdata == x.storage()._cdata


def test_resizing_out_warns_in_words_that_programs_filter():
    for t in (taeda, torch):
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            t.add(t.ones(2, 3), 1, out=t.ones(4))


def test_old_forms_warn_in_words_that_programs_filter():
    code = "import taeda as t; x = t.ones(1); t.add(x, 2, x); t.addcdiv(x, 1, x, x)"
    said = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True
    )
    assert "This overload of add is deprecated" in said.stderr
    assert "This overload of addcdiv is deprecated" in said.stderr


@pytest.mark.parametrize("value", ["", "a", b"", None, [], {}, False, 0, 1.5])
def test_what_a_function_gives_for_an_element_is_a_number(value):
    def call(package):
        return package.ones(2).apply_(lambda x: value)

    assert outcome(call, taeda) == outcome(call, torch)
