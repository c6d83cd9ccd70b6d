"""Dispatch keys: kernels above and below autograd, guards, redispatch, beside PyTorch's."""

import itertools
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def both(program):
    """What a program gives with each framework, as text without addresses or grad_fn's names."""
    found = []
    for t in (taeda, torch):
        try:
            found.append(repr(plain(program(t))))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def plain(value):
    if isinstance(value, (taeda.Tensor, torch.Tensor)):
        values = value.detach().tolist() if value.device.type != "meta" else "meta"
        return values, tuple(value.shape), value.requires_grad
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def library(t, *schemas):
    """A library of its own, and torch.ops' part of it."""
    name = f"test_keys_{next(_numbers)}"
    made = t.library.Library(name, "DEF")
    for schema in schemas:
        made.define(schema)
    return made, getattr(t.ops, name)


# --- operators of a program's own ---


def counted(t, below):
    """An operator whose kernel for Autograd counts its calls and goes on by `below`."""
    lib, ops = library(t, "f(Tensor x) -> Tensor")
    calls = []

    def kernel(*args):
        calls.append(1)
        return below(t, ops.f.default, *args)

    lib.impl("f", kernel, "Autograd", with_keyset=below in WITH_KEYS)
    lib.impl("f", lambda x: x * 7, "CPU")
    lib.impl("f", lambda x: x.new_empty(x.shape), "Meta")
    return lib, ops.f, calls


def by_guard(t, op, x):
    with t._C._AutoDispatchBelowAutograd():
        return op(x) * 10


def by_lower_guard(t, op, x):
    with t._C._AutoDispatchBelowADInplaceOrView():
        return op(x) * 10


def by_exclusion(t, op, x):
    keys = t._C.DispatchKeySet(t._C.DispatchKey.AutogradCPU)
    with t._C._ExcludeDispatchKeyGuard(keys):
        return op(x)


def by_keys(t, op, keys, x):
    return op.redispatch(keys & t._C._after_autograd_keyset, x) * 10


def by_full_keys(t, op, keys, x):
    after = t._C._dispatch_keyset_full_after(t._C.DispatchKey.AutogradOther)
    return op.redispatch(keys & after, x)


def by_function(t, op, x):
    class Times(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with t._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 100

    return Times.apply(x)


WITH_KEYS = (by_keys, by_full_keys)
BELOW = [by_guard, by_lower_guard, by_exclusion, by_keys, by_full_keys, by_function]
CALLS = {
    "plain": lambda t, f: f(t.ones(2)),
    "requires grad": lambda t, f: f(t.ones(2, requires_grad=True)),
    "no_grad": lambda t, f: under(t.no_grad(), lambda: f(t.ones(2, requires_grad=True))),
    "inference mode": lambda t, f: under(t.inference_mode(), lambda: f(t.ones(2))),
    "inference tensor": lambda t, f: f(under(t.inference_mode(), lambda: t.ones(2))),
    "normal tensor in inference mode": lambda t, f: normal_in_inference(t, f),
    "integers": lambda t, f: f(t.ones(2, dtype=t.int64)),
    "view": lambda t, f: f(t.ones(4)[:2]),
    "in a guard": lambda t, f: under(t._C._AutoDispatchBelowAutograd(), lambda: f(t.ones(2))),
    "meta": lambda t, f: f(t.ones(2, device="meta")),
    "overload": lambda t, f: f.default(t.ones(2)),
}


def under(context, call):
    with context:
        return call()


def normal_in_inference(t, f):
    x = t.ones(2, requires_grad=True)
    with t.inference_mode():
        return f(x)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("below", BELOW, ids=lambda f: f.__name__)
def test_an_autograd_kernel_answers_and_goes_below_as_pytorchs(below, call):
    if below is by_exclusion and call == "meta":
        pytest.skip("of another device's key, endless recursion in PyTorch")

    def program(t):
        lib, f, calls = counted(t, below)
        try:
            return CALLS[call](t, f), len(calls)
        finally:
            lib._destroy()

    ours, theirs = both(program)
    assert ours == theirs


def test_gradients_of_an_autograd_kernel_are_its_functions():
    def program(t):
        lib, f, calls = counted(t, by_function)
        x = t.ones(2, requires_grad=True)
        f(x).sum().backward()
        grad = x.grad.tolist()
        lib._destroy()
        return grad, len(calls)

    ours, theirs = both(program)
    assert ours == theirs == "[[100.0, 100.0], 1]"


def test_a_kernel_is_given_the_keys_of_its_call():
    def program(t):
        lib, ops = library(t, "f(Tensor x) -> Tensor", "g(Tensor x) -> Tensor")
        seen = []
        key = t._C.DispatchKey
        names = "CPU AutogradCPU ADInplaceOrView".split()

        def kernel(keys, x):
            seen.append([name for name in names if keys.has(getattr(key, name))])
            return x.clone()

        lib.impl("f", kernel, "Autograd", with_keyset=True)
        lib.impl("g", kernel, "CPU", with_keyset=True)
        ops.f(t.ones(1)), ops.f(t.ones(1, requires_grad=True)), ops.g(t.ones(1))
        lib._destroy()
        return seen[0], seen[1]

    ours, theirs = both(program)
    assert ours == theirs


def test_kernels_for_autograd_on_one_device_leave_others_alone():
    def program(t):
        lib, ops = library(t, "f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.new_full((3,), 1.0), "AutogradCPU")
        lib.impl("f", lambda x: x.new_empty(5), "Meta")
        lib.impl("f", lambda x: x.new_full((7,), 1.0), "CPU")
        first = [ops.f(t.ones(2)).shape[0], ops.f(t.ones(2, device="meta")).shape[0]]
        lib.impl("f", lambda x: x.new_empty(11), "AutogradMeta")
        second = [ops.f(t.ones(2)).shape[0], ops.f(t.ones(2, device="meta")).shape[0]]
        lib._destroy()
        return first, second

    ours, theirs = both(program)
    assert ours == theirs == "[[3, 5], [3, 11]]"


def test_a_custom_ops_gradient_costs_calls_without_grad_nothing():
    calls = []

    @taeda.library.custom_op(f"test_keys_{next(_numbers)}::f", mutates_args=())
    def f(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    f.register_autograd(
        lambda ctx, grad: grad * 2, setup_context=lambda ctx, inputs, output: calls.append(1)
    )
    f(taeda.ones(2))
    with taeda.no_grad():
        f(taeda.ones(2, requires_grad=True))
    assert calls == []
    f(taeda.ones(2, requires_grad=True))
    assert calls == [1]


# --- operators of the table ---


@pytest.mark.parametrize("below", [by_guard, by_keys, by_full_keys], ids=lambda f: f.__name__)
@pytest.mark.parametrize("call", [name for name in CALLS if name != "meta"])
def test_an_autograd_kernel_of_the_tables_goes_below(below, call):
    def program(t):
        calls = []
        lib = t.library.Library("aten", "IMPL")

        def kernel(*args):
            calls.append(1)
            return below(t, t.ops.aten.neg.default, *args)

        lib.impl("neg", kernel, "Autograd", with_keyset=below in WITH_KEYS)
        try:
            f = t.neg if call != "overload" else t.ops.aten.neg
            return CALLS[call](t, f), len(calls)
        finally:
            lib._destroy()

    ours, theirs = both(program)
    assert ours == theirs


def test_redispatch_of_the_tables_operators():
    def program(t):
        keys = t._C.DispatchKeySet(t._C.DispatchKey.CPU)
        x = t.ones(2, requires_grad=True)
        both = keys.add(t._C.DispatchKey.AutogradCPU)
        add = t.ops.aten.add.Tensor
        return add.redispatch(keys, x, x, alpha=3), add.redispatch(both, x, x)

    ours, theirs = both(program)
    assert ours == theirs


COMPOSITES = {
    "matmul CPU": ("matmul", "CPU", lambda t, x: t.matmul(x, x)),
    "matmul @": ("matmul", "CPU", lambda t, x: x @ x),
    "matmul Autograd": ("matmul", "Autograd", lambda t, x: x @ x),
    "matmul composite": ("matmul", "CompositeImplicitAutograd", lambda t, x: x @ x),
    "matmul explicit": ("matmul", "CompositeExplicitAutograd", lambda t, x: x @ x),
    "matmul by operator": ("matmul", "CPU", lambda t, x: t.ops.aten.matmul.default(x, x)),
    "matmul by packet": ("matmul", "CPU", lambda t, x: t.ops.aten.matmul(x, x)),
    "matmul in autocast": ("matmul", "CPU", lambda t, x: in_autocast(t, lambda: x @ x)),
    "matmul Meta": ("matmul", "CPU", lambda t, x: x.to("meta") @ x.to("meta")),
    "reshape": ("reshape", "CPU", lambda t, x: x.reshape(1, 2)),
    "tile": ("tile", "CompositeImplicitAutograd", lambda t, x: x.tile(3)),
    "zeros": ("zeros", "CPU", lambda t, x: t.zeros(2)),
    "zeros explicit": ("zeros", "CompositeExplicitAutograd", lambda t, x: t.zeros(2)),
    "zeros meta": ("zeros", "CPU", lambda t, x: t.zeros(2, device="meta")),
    "zeros Meta": ("zeros", "Meta", lambda t, x: t.zeros(2, device="meta")),
    "zeros Autograd": ("zeros", "Autograd", lambda t, x: t.zeros(2)),
    "full": ("full", "CPU", lambda t, x: t.full((3,), 2.0)),
    "arange.start_step": ("arange.start_step", "CPU", lambda t, x: t.arange(0, 6, 2)),
    "another": ("matmul", "CPU", lambda t, x: x.reshape(1, 2)),
}


def in_autocast(t, call):
    with t.autocast("cpu", dtype=t.bfloat16):
        return call().float()


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_and_factories_have_kernels_as_pytorchs(name):
    op, key, call = COMPOSITES[name]

    def program(t):
        x, device = t.tensor([1.0, 2.0]), "meta" if key == "Meta" else "cpu"
        answer = t.empty(5, device=device) if key == "Meta" else t.tensor([42.0, 42.0])
        lib = t.library.Library("aten", "IMPL")
        try:
            lib.impl(op, lambda *args, **kwargs: answer, key)
            inside = call(t, x)
        finally:
            lib._destroy()
        return inside, call(t, t.tensor([1.0, 2.0]))

    ours, theirs = both(program)
    assert ours == theirs


def test_an_autograd_kernel_of_a_composite_goes_below():
    def program(t, with_keys, with_device):
        lib = t.library.Library("aten", "IMPL")
        calls = []

        def by_guard(x, y):
            calls.append(1)
            with t._C._AutoDispatchBelowAutograd():
                return t.matmul(x, y)

        def by_keys(keys, x, y):
            calls.append(1)
            return t.ops.aten.matmul.default.redispatch(keys & t._C._after_autograd_keyset, x, y)

        lib.impl("matmul", by_keys if with_keys else by_guard, "Autograd", with_keyset=with_keys)
        if with_device:  # else the composite stands for autograd too
            lib.impl("matmul", lambda x, y: (x * y).sum() + 1, "CPU")
        try:
            x = t.ones(2, requires_grad=True)
            return x @ x, x.detach() @ x.detach(), len(calls)
        finally:
            lib._destroy()

    for flags in itertools.product((False, True), repeat=2):
        ours, theirs = both(lambda t, flags=flags: program(t, *flags))
        assert ours == theirs


def test_what_a_composites_kernel_calls_is_recorded():
    lib = taeda.library.Library("aten", "IMPL")
    lib.impl("matmul", lambda x, y: (x * y * 3).sum(), "CPU")
    x = taeda.ones(2, requires_grad=True)
    (x @ x).backward()
    lib._destroy()
    assert x.grad.tolist() == [6.0, 6.0]


def test_other_threads_find_a_composites_kernel():
    import threading

    lib = taeda.library.Library("aten", "IMPL")
    lib.impl("matmul", lambda x, y: taeda.tensor(42.0), "CPU")
    found = []
    thread = threading.Thread(target=lambda: found.append((taeda.ones(2) @ taeda.ones(2)).item()))
    thread.start()
    thread.join()
    lib._destroy()
    assert found == [42.0]


def test_in_place_forms_of_composites_say_why_they_have_none():
    lib = taeda.library.Library("aten", "IMPL")
    with pytest.raises(NotImplementedError, match="whose result is copied; give that one a kernel"):
        lib.impl("addmv_", lambda x, a, b: x, "CPU")
    lib._destroy()


# --- fallbacks ---


def test_a_fallback_answers_for_operators_without_a_kernel():
    def program(t):
        lib, ops = library(t, "f(Tensor x) -> Tensor", "g(Tensor x) -> Tensor")
        lib.impl("g", lambda x: x * 3, "CPU")
        fallbacks = t.library.Library("_", "IMPL")
        fallbacks.fallback(lambda op, x: (op.name().rpartition("::")[2], x.sum().item()) and x + 5,
                           "CPU")  # fmt: skip
        x = t.ones(2)
        try:
            return ops.f(x), ops.g(x), t.neg(x)
        finally:
            fallbacks._destroy()
            lib._destroy()

    ours, theirs = both(program)
    assert ours == theirs


def test_a_fallback_is_given_operator_and_keys():
    lib, ops = library(taeda, "f(Tensor x, *, int n=2) -> Tensor")
    fallbacks = taeda.library.Library("_", "IMPL")
    seen = []

    def fallback(keys, op, *args, **kwargs):
        seen.append((keys.has(taeda._C.DispatchKey.CPU), op is ops.f.default, len(args), kwargs))
        return args[0]

    fallbacks.fallback(fallback, "CPU", with_keyset=True)
    ops.f(taeda.ones(2), n=4)
    assert seen == [(True, True, 1, {"n": 4})]
    assert taeda._C._dispatch_has_backend_fallback(taeda._C.DispatchKey.CPU)
    fallbacks._destroy()
    assert not taeda._C._dispatch_has_backend_fallback(taeda._C.DispatchKey.CPU)
    with pytest.raises(NotImplementedError, match="no kernel was registered"):
        ops.f(taeda.ones(2))
    lib._destroy()


@pytest.mark.parametrize("fallback", [
    lambda t: t.library.Library("aten", "IMPL").fallback(lambda op: None, "CPU"),
    lambda t: t.library.Library("_", "IMPL").fallback(lambda op: None),
    lambda t: t.library.Library("_", "IMPL").fallback(lambda op: None, "NoSuchKey"),
])  # fmt: skip
def test_wrong_fallbacks_raise_as_in_pytorch(fallback):
    ours, theirs = both(fallback)
    assert ours == theirs != "None"


# --- questions about keys ---

QUESTIONS = [
    lambda t, c: c._dispatch_keys(t.ones(2)),
    lambda t, c: c._dispatch_keys(t.ones(2, device="meta")),
    lambda t, c: c._dispatch_keys(t.ones(2, dtype=t.cfloat).conj()),
    lambda t, c: c._dispatch_keys(t.ones(2, requires_grad=True)),
    lambda t, c: c._dispatch_keys(t.ones(2).to_sparse()),
    lambda t, c: under(t.inference_mode(), lambda: c._dispatch_keys(t.ones(2))),
    lambda t, c: c._dispatch_key_set(t.ones(2)),
    lambda t, c: c._dispatch_keys(t.ones(2)).highestPriorityTypeId().name,
    lambda t, c: (c._dispatch_keys(t.ones(2)) & c._after_autograd_keyset),
    lambda t, c: (c._dispatch_keys(t.ones(2)) & c._after_ADInplaceOrView_keyset),
    lambda t, c: c.DispatchKeySet(c.DispatchKey.CPU).add(c.DispatchKey.AutogradCPU),
    lambda t, c: c._dispatch_keys(t.ones(2)).remove(c.DispatchKey.CPU),
    lambda t, c: c.DispatchKeySet.from_raw_repr(c._dispatch_keys(t.ones(2)).raw_repr()),
    lambda t, c: c._dispatch_key_name(c.DispatchKey.AutogradCPU),
    lambda t, c: c._dispatch_key_parse("AutogradCPU").name,
    lambda t, c: c._dispatch_key_parse("NoSuchKey"),
    lambda t, c: c._parse_dispatch_key("NoSuchKey"),
    lambda t, c: c._dispatch_key_for_device("cpu"),
    lambda t, c: c._dispatch_num_backends(),
    lambda t, c: [c._dispatch_is_alias_key(getattr(c.DispatchKey, k))
                  for k in ("Autograd", "CPU", "CompositeImplicitAutograd")],
    lambda t, c: [c._dispatch_is_included_in_alias(k, a) for k, a in
                  itertools.product(("CPU", "AutogradCPU"),
                                    ("Autograd", "CompositeImplicitAutograd",
                                     "CompositeExplicitAutograd"))],
    lambda t, c: [c._dispatch_has_kernel(n) for n in ("aten::add.Tensor", "aten::no_such")],
    lambda t, c: [c._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", k)
                  for k in ("CPU", "Meta", "Autograd", "CompositeImplicitAutograd")],
    lambda t, c: [c._dispatch_has_kernel_for_dispatch_key("aten::reshape", k)
                  for k in ("CPU", "Meta", "CompositeImplicitAutograd")],
    lambda t, c: c._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", c.DispatchKey.CPU),
    lambda t, c: c._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "NoSuchKey"),
    lambda t, c: c._dispatch_has_kernel_for_dispatch_key("aten::no_such", "CPU"),
    lambda t, c: c._dispatch_has_kernel_for_any_dispatch_key("aten::add.Tensor",
                                                             c._dispatch_keys(t.ones(1))),
    lambda t, c: [c._dispatch_has_computed_kernel_for_dispatch_key(n, k) for n, k in
                  itertools.product(("aten::add.Tensor", "aten::reshape", "aten::zeros"),
                                    ("CPU", "Meta", "AutogradCPU", "AutocastCPU"))],
    lambda t, c: [c._dispatch_has_backend_fallback(getattr(c.DispatchKey, k))
                  for k in ("CPU", "AutogradCPU", "Conjugate")],
    lambda t, c: len(c._dispatch_get_all_op_names()) > 1000,
    lambda t, c: "aten::add.Tensor" in c._dispatch_get_registrations_for_dispatch_key("CPU"),
    lambda t, c: c._dispatch_call_boxed(c._dispatch_find_schema_or_throw("aten::add", "Tensor"),
                                        t.ones(1), t.ones(1), alpha=2),
    lambda t, c: c._dispatch_find_schema_or_throw("aten::no_such", ""),
    lambda t, c: c._dispatch_isTensorSubclassLike(t.ones(1)),
    lambda t, c: t.ops.aten.add.Tensor.has_kernel_for_dispatch_key(c.DispatchKey.CPU),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_questions_about_keys_have_pytorchs_answers(number):
    ours, theirs = both(lambda t: QUESTIONS[number](t, t._C))
    assert ours == theirs


def test_questions_about_registered_operators():
    def program(t):
        lib, ops = library(t, "f(Tensor x) -> Tensor")
        name = ops.f.default.name()
        keys = "CPU Meta Autograd AutogradCPU CompositeImplicitAutograd".split()
        has = t._C._dispatch_has_kernel_for_dispatch_key
        before = [has(name, key) for key in keys], t._C._dispatch_has_kernel(name)
        lib.impl("f", lambda x: x, "CPU")
        lib.impl("f", lambda x: x, "Meta")
        after = [has(name, key) for key in keys], t._C._dispatch_has_kernel(name)
        lib._destroy()
        return before, after

    ours, theirs = both(program)
    assert ours == theirs


def test_a_guards_block_ends_with_the_state_before():
    def program(t):
        key, excluded = t._C.DispatchKey.AutogradOther, t._C._dispatch_tls_is_dispatch_key_excluded
        states = [excluded(key)]
        with t._C._AutoDispatchBelowAutograd():
            states += [excluded(key), t.is_grad_enabled()]
            with t.no_grad(), t._C._AutoDispatchBelowAutograd():
                states.append(excluded(key))
            states.append(excluded(key))
        x = t.ones(2, requires_grad=True)
        return [*states, excluded(key), (x * 2).requires_grad]

    ours, theirs = both(program)
    assert ours == theirs


def test_py_impl_keeps_kernels_by_key():
    def program(t):
        lib, ops = library(t, "f(Tensor x) -> Tensor")
        key = t._C.DispatchKey.Meta
        kernel = ops.f.default.py_impl(key)(lambda x: x)
        again = "allowed"
        try:
            ops.f.default.py_impl(key)(lambda x: x)
        except RuntimeError as error:
            again = "Trying to override a python impl" in str(error)
        found = ops.f.default.py_kernels[key] is kernel
        lib._destroy()
        return found, again

    ours, theirs = both(program)
    assert ours == theirs
