"""The override protocol: subclasses, duck types, modes."""

import copy
import inspect
import operator
import pickle
import types
import weakref

import pytest

import taeda as torch
import taeda.nn.functional as F
from taeda.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
)


class Points(torch.Tensor):
    pass


class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types))
        return super().__torch_function__(func, types, args, kwargs or {})


class Duck:
    def __init__(self, answer):
        self.answer = answer

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        flat = [b for a in args for b in (a if isinstance(a, list) else [a])]
        return next(a.answer for a in flat if isinstance(a, Duck))


def test_results_keep_the_subclass():
    x = Points([[1.0, 2.0], [3.0, 4.0]])
    assert type(x.clone()) is Points
    assert type(x[0]) is Points
    assert type(x.T) is Points
    assert type(torch.cat([x, x])) is Points
    assert all(type(part) is Points for part in x.unbind())
    assert type(x.shape) is torch.Size
    assert isinstance(x.tolist(), list)


def test_plain_tensors_do_not_ask():
    x = torch.tensor([1.0])
    assert type(x.clone()) is torch.Tensor
    assert not has_torch_function((x, 1, "a"))


def test_functions_and_methods_are_named():
    Logged.calls.clear()
    x = Logged([1.0, 2.0])
    torch.clone(x)
    x.clone()
    assert [call[0] for call in Logged.calls] == [torch.clone, torch.Tensor.clone]
    assert Logged.calls[0][1] == (Logged,)


def test_properties_and_indexing_are_seen():
    Logged.calls.clear()
    x = Logged([1.0, 2.0])
    _ = x.shape
    _ = x[0]
    x[0] = 3.0
    names = [call[0].__name__ for call in Logged.calls]
    assert names == ["__get__", "__getitem__", "__setitem__"]


def test_duck_types():
    x = torch.tensor([1.0])
    assert torch.clone(Duck(5)) == 5
    assert torch.cat([x, Duck("cat")]) == "cat"
    assert x.copy_(Duck("copied")) == "copied"
    assert is_tensor_like(Duck(1))
    assert not is_tensor_like(3)


def test_all_decline():
    class Declines:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.clone'"):
        torch.clone(Declines())


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(1),
        lambda x: torch.max(x, 1),
        lambda x: x.sort(),
        lambda x: torch.topk(x, 2),
        lambda x: torch.linalg.svd(x),
        lambda x: torch.linalg.slogdet(x),
    ],
)
def test_results_with_names_keep_the_subclass(call):
    plain = torch.eye(3) * torch.tensor([3.0, 1.0, 2.0])
    named, expected = call(plain.as_subclass(Points)), call(plain)
    assert type(named) is type(expected)
    assert [type(part) for part in named] == [Points] * len(named)
    assert [part.tolist() for part in named] == [part.tolist() for part in expected]


def test_subclasses_come_before_their_bases():
    order = []

    class Base(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError):
        torch.cat([Base([1.0]), Derived([1.0]), Base([2.0])])
    assert order == ["Derived", "Base"]


def test_errors_pass_through():
    class Fails(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("inside")

    with pytest.raises(KeyError):
        Fails([1.0]).clone()


def test_modes_nest_and_end():
    seen = []

    class Log(TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    x = torch.tensor([1.0])
    with Log("outer"), Log("inner"):
        x.clone()
    x.clone()
    assert seen == [("inner", "clone"), ("outer", "clone")]

    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with pytest.raises(ValueError), Fails():
        x.clone()
    assert x.clone().tolist() == [1.0]


def test_python_functions_can_be_overridden():
    def double(x):
        if has_torch_function((x,)):
            return handle_torch_function(double, (x,), x)
        return 2 * x

    assert double(Duck("yes")) == "yes"
    assert double(4) == 8


def test_disabled_subclass():
    class Quiet(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = Quiet([1.0, 2.0])
    assert type(x.clone()) is torch.Tensor
    assert not has_torch_function((x,))


@pytest.mark.parametrize("name", ["DisableTorchFunctionSubclass", "DisableTorchFunction"])
def test_switches_of_the_extension_module(name):
    names = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = Points([1.0, 2.0])
    with Log(), getattr(torch._C, name)():
        assert type(x.clone()) is torch.Tensor
    assert names == (["clone"] if name.endswith("Subclass") else [])
    assert type(x.clone()) is Points
    with Log():
        x.neg()
    assert names[-1] == "neg"


def test_setting_and_deleting_a_property_is_seen():
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((getattr(func, "__name__", None), len(args)))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logged)
    seen.clear()
    x.requires_grad = True
    x.grad = torch.zeros(2)
    x.data = torch.full((2,), 3.0)
    del x.grad
    assert seen == [("__set__", 2), ("__set__", 2), ("__set__", 2), ("__delete__", 1)]
    assert x.requires_grad and x.grad is None and x.tolist() == [3, 3]


class Seen(torch.Tensor):
    """Remembers what it was asked about; results keep the class."""

    functions = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.functions.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def seen(*shape, dtype=torch.float32):
    return torch.rand(*shape).to(dtype).as_subclass(Seen)


IMAGE = (1, 2, 4, 4)
CALLS = {
    F.interpolate: lambda f: f(seen(*IMAGE), scale_factor=2),
    F.mse_loss: lambda f: f(seen(3), torch.zeros(3)),
    F.cross_entropy: lambda f: f(torch.rand(2, 3), target=seen(2, 3)),
    F.adaptive_avg_pool2d: lambda f: f(seen(*IMAGE), 2),
    F.scaled_dot_product_attention: lambda f: f(*(seen(*IMAGE) for _ in range(3))),
    F.relu: lambda f: f(seen(3), inplace=True),
    F.dropout: lambda f: f(seen(3)),
    F.softmax: lambda f: f(seen(3), dim=0),
    torch.einsum: lambda f: f("ij,jk->ik", seen(2, 2), torch.ones(2, 2)),
    torch.tensordot: lambda f: f(seen(2, 2), torch.ones(2, 2), 1),
    torch.unique: lambda f: f(seen(3)),
    torch.nonzero: lambda f: f(seen(3)),
    torch.block_diag: lambda f: f(torch.ones(2), seen(3)),
    torch.meshgrid: lambda f: f([torch.ones(2), seen(3)], indexing="ij")[0],
    torch.atleast_2d: lambda f: f(seen(3)),
    torch.nn.init.uniform_: lambda f: f(tensor=seen(3)),
}


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_functions_written_in_python_are_seen_under_their_own_name(function):
    Seen.functions.clear()
    result = CALLS[function](function)
    assert type(result) is Seen
    assert Seen.functions[-1] is function, "an operator inside the function was seen instead"
    assert Seen.functions.count(function) == 1


def test_methods_written_in_python_are_seen():
    x = seen(3)
    for method in ("unique", "nonzero", "apply_", "dim_order", "new_tensor"):
        Seen.functions.clear()
        arguments = {"apply_": (abs,), "new_tensor": ([1.0],)}.get(method, ())
        getattr(x, method)(*arguments)
        assert Seen.functions == [getattr(torch.Tensor, method)]


def test_every_public_function_is_overridable_as_in_pytorch():
    oracle = pytest.importorskip("torch")
    overridable = oracle.overrides.get_testing_overrides()
    for ours, theirs in (
        (torch, oracle),
        (F, oracle.nn.functional),
        (torch.nn.init, oracle.nn.init),
    ):
        for name in dir(ours):
            function = getattr(ours, name, None)
            raises = getattr(function, "_only_raises", False)
            if function is torch.einsum:  # which hands over by itself
                continue
            if type(function) is types.FunctionType and not (name.startswith("_") or raises):
                assert getattr(theirs, name, None) not in overridable, f"{ours.__name__}.{name}"


def test_overridable_functions_are_still_functions():
    assert inspect.isfunction(F.interpolate)
    assert next(iter(inspect.signature(F.interpolate).parameters)) == "input"
    assert inspect.getfullargspec(F.relu).args == ["input", "inplace"]
    assert F.relu.__module__ == "taeda.nn.functional" and F.relu.__doc__
    for function in (F.relu, F.linear, torch.einsum, torch.add):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function

    class Layer:
        activation = F.relu

    with pytest.raises(TypeError, match="relu"):
        Layer().activation(1, 2, 3)  # bound, as any function of a class
    assert weakref.ref(F.relu)() is F.relu
    F.relu.note = 1
    assert F.relu.note == 1
    del F.relu.note


def test_modes_see_functions_written_in_python():
    names = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Log():
        F.mse_loss(torch.ones(2), torch.zeros(2))
    assert names == ["ones", "zeros", "mse_loss"]


@pytest.mark.parametrize(
    "path",
    [
        "add", "relu", "Tensor.add", "Tensor.norm", "Tensor.__getitem__", "Tensor.__len__",
        "Tensor.__rsub__", "Tensor.T.__get__", "Tensor.grad.__get__",
        "Tensor.requires_grad.__set__",
        "linalg.svd", "nn.functional.relu", "nn.functional.cross_entropy", "nn.functional.conv2d",
        "nn.init.xavier_normal_",
    ],
)  # fmt: skip
def test_names_of_functions(path):
    oracle = pytest.importorskip("torch")
    from torch.overrides import resolve_name as their_resolve_name

    find = operator.attrgetter(path)
    assert resolve_name(find(torch)) == their_resolve_name(find(oracle)) == f"torch.{path}"


def test_names_of_what_is_not_ours():
    assert resolve_name(torch.einsum) == "torch.functional.einsum"
    assert resolve_name(print) is None
    assert resolve_name(operator.attrgetter("x")) is None
    assert resolve_name((1).__add__) is None
    assert resolve_name(property().__get__) is None


def assign(x):
    x[0] = 1


def seen_by_a_mode(module, action):
    """What a mode sees of it, and whether it raised."""
    from importlib import import_module

    overrides = import_module(f"{module.__name__}.overrides")
    seen = []

    class Log(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((overrides.resolve_name(func), len(args)))
            return func(*args, **(kwargs or {}))

    x = module.arange(6.0).reshape(2, 3)
    with Log():
        result = action(x)
    return seen, repr(result)


@pytest.mark.parametrize(
    "action",
    [
        lambda x: x[0, 1:], lambda x: x[x > 1], assign, lambda x: x.shape, lambda x: x.T,
        lambda x: x.grad, lambda x: setattr(x, "requires_grad", True), lambda x: x.dtype,
        len, lambda x: bool(x[0, 0]), lambda x: float(x.sum()), lambda x: int(x.sum()),
        lambda x: 1.0 in x, lambda x: 1 + x, lambda x: 2**x, lambda x: 1 - x, lambda x: 1 / x,
        lambda x: [5, 6, 7][x.long().sum() - 14],
    ],
)  # fmt: skip
def test_modes_see_slots_and_properties(action):
    oracle = pytest.importorskip("torch")
    mine, theirs = seen_by_a_mode(torch, action), seen_by_a_mode(oracle, action)
    assert mine == theirs and mine[0]


def test_modes_see_one_call_of_repr():
    seen, _ = seen_by_a_mode(torch, repr)
    assert seen == [("torch.Tensor.__repr__", 1)]


def test_modes_of_other_threads_are_not_asked():
    import threading

    seen = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Log():
        worker = threading.Thread(target=lambda: (x[0], x.shape, len(x), float(x[1]), 1 + x))
        worker.start()
        worker.join()
    assert seen == []


def test_a_subclass_sees_its_conversions():
    names = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(1).as_subclass(Watched)
    assert (len(x), bool(x), float(x), int(x), 1.0 in x) == (1, True, 1.0, 1, True)
    assert names == ["__len__", "__bool__", "__float__", "__int__", "__contains__"]


class Recorded(torch.Tensor):
    """Answers each function with its arguments."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, len(args), dict(kwargs or {})


@pytest.mark.parametrize(
    ("name", "required"),
    [
        *(("relu", ()), ("dropout", ()), ("softmax", ()), ("hardtanh", ()), ("interpolate", ())),
        *(("max_pool2d", (2,)), ("layer_norm", ([2],)), ("group_norm", (2,)), ("pad", ([1, 1],))),
        *(("cross_entropy", "x"), ("mse_loss", "x"), ("gaussian_nll_loss", "xx")),
        *(("linear", "x"), ("gelu", ()), ("conv2d", "x"), ("pixel_shuffle", (2,))),
        *(("unfold", (2,)), ("batch_norm", "xx"), ("embedding", "x"), ("normalize", ())),
    ],
)
def test_layers_hand_on_their_defaults_by_name(name, required):
    oracle = pytest.importorskip("torch")

    class Theirs(oracle.Tensor):
        __torch_function__ = Recorded.__dict__["__torch_function__"]

    def handed_on(library, kind):
        x = library.ones(2, 2).as_subclass(kind)
        layer = getattr(library.nn.functional, name)
        function, count, kwargs = layer(x, *(x if given == "x" else given for given in required))
        return function == layer, count, kwargs

    theirs = handed_on(oracle, Theirs)
    theirs[2].pop("out", None)  # normalize(out=) is not there
    assert handed_on(torch, Recorded) == theirs


def test_what_is_given_in_place_of_defaults_is_handed_on_by_name():
    x = torch.ones(2).as_subclass(Recorded)
    assert F.dropout(x, 0.25, inplace=True)[1:] == (
        1,
        {"p": 0.25, "training": True, "inplace": True},
    )
    assert F.linear(x, x, x)[1:] == (3, {})


def test_operators_of_torch_are_the_same_objects_in_nn_functional():
    for name in ("conv2d", "conv_transpose1d", "pixel_shuffle", "prelu", "relu_"):
        assert getattr(F, name) is getattr(torch, name), name


def overridable_names(overrides, owner):
    functions = overrides.get_overridable_functions()[owner]
    return {overrides.resolve_name(f).rpartition(".")[2] for f in functions}


@pytest.mark.parametrize(
    ("path", "share"),
    [("", 0.9), ("nn.functional", 0.97), ("linalg", 0.97), ("fft", 1), ("Tensor", 0.95)],
)  # fmt: skip
def test_what_can_be_overridden_is_what_pytorch_names(path, share):
    oracle = pytest.importorskip("torch")
    import torch.overrides as theirs

    from taeda import overrides

    owner = operator.attrgetter(path) if path else lambda module: module
    expected = overridable_names(theirs, owner(oracle))
    found = overridable_names(overrides, owner(torch))
    assert len(found & expected) >= share * len(expected)


def test_what_is_never_overridden():
    from taeda.overrides import get_ignored_functions, get_overridable_functions

    ignored = get_ignored_functions()
    assert {torch.zeros, torch.load, torch.no_grad, torch.Tensor.new_zeros} <= ignored
    assert not ignored & {f for each in get_overridable_functions().values() for f in each}
    assert not is_tensor_method_or_property(torch.Tensor.new_zeros)
    assert is_tensor_method_or_property(torch.Tensor.add)
    assert is_tensor_method_or_property(torch.Tensor.T.__get__)


def test_stand_ins_take_what_the_functions_take():
    from taeda.overrides import get_testing_overrides

    stand_ins = get_testing_overrides()
    assert stand_ins[torch.add](1, 2) == -1
    assert stand_ins[torch.nn.functional.relu](1, inplace=True) == -1
    assert stand_ins[torch.Tensor.grad.__get__](1) == -1
    with pytest.raises(TypeError):
        stand_ins[torch.nn.functional.relu]()
