"""torch.library: operators of a program's own."""

import inspect

import pytest

import taeda
from taeda.library import Library, _scoped_library, custom_op, infer_schema, opcheck

Tensor = taeda.Tensor
counter = 0


@pytest.fixture
def namespace():
    """A namespace that no other test uses."""
    global counter
    counter += 1
    return f"test_library_{counter}"


def ops(namespace):
    return getattr(taeda.ops, namespace)


# --- Library ---


def test_define_and_impl(namespace):
    library = Library(namespace, "DEF")
    assert library.define("plus(Tensor x, int n=1) -> Tensor") == "plus"
    assert library.define("plus.two(Tensor x, int n, int m) -> Tensor") == "plus"
    library.impl("plus", lambda x, n=1: x + n, "CPU")
    x = taeda.zeros(2)
    assert ops(namespace).plus(x).tolist() == [1.0, 1.0]
    assert ops(namespace).plus.default(x, 3).tolist() == [3.0, 3.0]
    assert ops(namespace).plus(x, n=4).tolist() == [4.0, 4.0]
    assert (
        str(ops(namespace).plus.default._schema)
        == f"{namespace}::plus(Tensor x, int n=1) -> Tensor"
    )


def test_arguments_and_results_of_every_type(namespace):
    library = Library(namespace, "DEF")
    library.define(
        "echo(Tensor t, Tensor? n, Tensor[] ts, int i, int[] ints, float f, float[] fs, bool b, "
        "str s, Scalar c, ScalarType d, Device v) "
        "-> (Tensor, Tensor[], int, int[], float, bool, Scalar)"
    )
    given = []

    def echo(*args):
        given.append(args)
        return args[0].clone(), [args[0].clone()], args[3], args[4], args[5], args[7], args[9]

    library.impl("echo", echo, "CPU")
    x = taeda.ones(2)
    result = ops(namespace).echo(
        x, None, [x], 3, (1, 2), 1, [0.5], True, "s", 2j, taeda.float64, "cpu"
    )
    args = given[0]
    assert args[0] is x
    assert args[1] is None
    assert args[2][0] is x
    assert args[3:5] == (3, [1, 2])
    assert args[5:9] == (1.0, [0.5], True, "s")
    assert args[9:12] == (2j, taeda.float64, taeda.device("cpu"))
    assert [type(r).__name__ for r in result] == [
        "Tensor",
        "list",
        "int",
        "list",
        "float",
        "bool",
        "complex",
    ]


def test_composite_kernels_are_differentiable(namespace):
    library = Library(namespace, "DEF")
    library.define("square(Tensor x) -> Tensor")
    library.impl("square", lambda x: x * x)
    x = taeda.tensor([3.0], requires_grad=True)
    ops(namespace).square(x).backward()
    assert x.grad.item() == 6.0


def test_a_fallthrough_goes_on_with_the_next_key(namespace):
    library = Library(namespace, "DEF")
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x.clone(), "CPU")
    library.fallthrough("same", "Autograd")
    x = taeda.ones(1, requires_grad=True)
    assert ops(namespace).same(x).tolist() == [1.0]


def test_what_a_library_registers_ends_with_it(namespace):
    with taeda.library._scoped_library(namespace, "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        assert ops(namespace).f
    with pytest.raises(AttributeError):
        _ = ops(namespace).g


def test_errors_name_the_operator(namespace):
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        library.define("f(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=f"Could not run '{namespace}::f'"):
        ops(namespace).f(taeda.ones(1))
    with pytest.raises(RuntimeError, match="does not exist"):
        library.impl("g", lambda x: x, "Meta")
    for name in "fg":
        with pytest.raises(RuntimeError, match="could not parse dispatch key"):
            library.impl(name, lambda x: x, "Nonsense")
    with pytest.raises(NotImplementedError, match="cannot be given a kernel for BackendSelect"):
        Library("aten", "IMPL").impl("aten::relu", lambda x: x, "BackendSelect")
    with pytest.raises(RuntimeError, match="operator table"):
        Library("aten", "DEF").define("mine(Tensor x) -> Tensor")
    library.impl("f", lambda x: "text", "CPU")
    with pytest.raises(RuntimeError, match=rf"the kernel of {namespace}::f returned str"):
        ops(namespace).f(taeda.ones(1))


def test_what_the_schema_says_is_written_counts_as_changed(namespace):
    library = Library(namespace, "DEF")
    library.define("fill(Tensor(a!) x) -> ()")
    library.impl("fill", lambda x: None, "CPU")
    x = taeda.ones(2)
    version = x._version
    assert ops(namespace).fill(x) is None
    assert x._version > version


def test_without_a_gradient_backward_says_so(namespace):
    library = Library(namespace, "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x.detach() * 2, "CPU")
    x = taeda.ones(1, requires_grad=True)
    y = ops(namespace).twice(x)
    assert y.requires_grad
    with pytest.raises((NotImplementedError, RuntimeError), match="twice"):
        y.backward()


@pytest.mark.parametrize("framework", ["torch", "taeda"])
def test_what_a_kernel_calls_is_recorded(namespace, framework):
    package = pytest.importorskip(framework)
    library = package.library.Library(namespace, "DEF")
    library.define("into(Tensor x, Tensor(a!) y) -> Tensor(a!)")
    library.impl("into", lambda x, y: y.add_(x * 2), "CPU")
    library.define("rest(Tensor(a) x) -> Tensor(a)")
    library.impl("rest", lambda x: x[1:], "CPU")
    found = getattr(package.ops, namespace)
    x, y = package.ones(3, requires_grad=True), package.zeros(3)
    assert found.into(x, y) is y
    assert y.requires_grad
    view = found.rest(x)
    assert view._base is x
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [2.0, 3.0, 3.0]
    library._destroy()
    with pytest.raises(AttributeError, match="rest"):
        _ = found.rest


def test_a_kernels_number_is_no_tensor(namespace):
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: 3, "CPU")
    with pytest.raises(RuntimeError, match=f"{namespace}::f returned int .* 'Tensor'"):
        ops(namespace).f(taeda.ones(1))


def test_modes_see_registered_operators(namespace):
    from taeda.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    x = taeda.ones(1)
    with Log():
        y = ops(namespace).f(x)
    assert y.item() == 2
    # What a kernel in Python calls goes to the next mode, as under PyTorch.
    assert seen == [f"{namespace}.f.default"]


# --- functions ---


def test_functions_register_without_a_library(namespace):
    name = f"{namespace}::sine"
    taeda.library.define(name, "(Tensor x) -> Tensor")

    @taeda.library.impl(name, "cpu")
    def sine(x):
        return taeda.from_numpy(__import__("numpy").sin(x.detach().numpy()))

    @taeda.library.register_fake(name)
    def _(x):
        return taeda.empty_like(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    taeda.library.register_autograd(name, backward, setup_context=setup_context)
    x = taeda.tensor([0.5], requires_grad=True)
    y = ops(namespace).sine(x)
    assert y.item() == pytest.approx(0.4794255)
    y.backward()
    assert x.grad.item() == pytest.approx(0.8775826)
    assert ops(namespace).sine(taeda.empty(3, device="meta")).shape == (3,)
    assert set(opcheck(ops(namespace).sine.default, (x,)).values()) == {"SUCCESS"}


# --- custom_op ---


def test_a_function_becomes_an_operator(namespace):
    @custom_op(f"{namespace}::crop", mutates_args=())
    def crop(pic: Tensor, box: list[int], scale: float = 1.0) -> Tensor:
        return pic[box[0] : box[1]] * scale

    assert str(crop._opoverload._schema) == (
        f"{namespace}::crop(Tensor pic, int[] box, float scale=1.) -> Tensor"
    )
    assert crop(taeda.arange(5.0), [1, 3]).tolist() == [1.0, 2.0]
    assert ops(namespace).crop(taeda.arange(5.0), [1, 3], 2.0).tolist() == [2.0, 4.0]


def test_a_device_may_be_a_default(namespace):
    @custom_op(f"{namespace}::moved", mutates_args=())
    def moved(x: Tensor, device: taeda.device = taeda.device("cpu")) -> Tensor:
        return x.to(device, copy=True)

    assert moved(taeda.ones(2)).device == taeda.device("cpu")
    assert moved(taeda.ones(2), taeda.device("meta")).is_meta
    assert moved._opoverload._schema.arguments[1].default_value == taeda.device("cpu")


def test_a_custom_op_with_gradient_fake_and_kernels(namespace):
    @custom_op(f"{namespace}::cube", mutates_args=(), device_types="cpu")
    def cube(x: Tensor) -> tuple[Tensor, Tensor]:
        values = x.detach().numpy()
        return taeda.from_numpy(values**3), taeda.from_numpy(3 * values**2)

    @cube.register_fake
    def _(x):
        return taeda.empty_like(x), taeda.empty_like(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    def backward(ctx, grad, grad_slope):
        x, slope = ctx.saved_tensors
        return grad * slope + 6 * grad_slope * x

    cube.register_autograd(backward, setup_context=setup_context)
    x = taeda.tensor([2.0], requires_grad=True)
    value, slope = cube(x)
    assert (value.item(), slope.item()) == (8.0, 12.0)
    (value + slope).sum().backward()
    assert x.grad.item() == 24.0
    assert set(opcheck(cube, (x,)).values()) == {"SUCCESS"}


def test_gradients_of_tensors_in_lists(namespace):
    @custom_op(f"{namespace}::total", mutates_args=())
    def total(xs: list[Tensor], weight: float) -> Tensor:
        return sum(x.sum() for x in xs) * weight

    def setup_context(ctx, inputs, output):
        xs, ctx.weight = inputs
        ctx.shapes = [x.shape for x in xs]

    def backward(ctx, grad):
        return [grad.expand(shape) * ctx.weight for shape in ctx.shapes], None

    total.register_autograd(backward, setup_context=setup_context)
    xs = [taeda.ones(2, requires_grad=True), taeda.ones(3, requires_grad=True)]
    total(xs, 2.0).backward()
    assert [x.grad.tolist() for x in xs] == [[2.0, 2.0], [2.0, 2.0, 2.0]]


def test_an_operator_that_writes(namespace):
    @custom_op(f"{namespace}::sin_", mutates_args={"x"})
    def sin_(x: Tensor) -> None:
        x.copy_(x.sin())

    x = taeda.tensor([0.5])
    version = x._version
    assert sin_(x) is None
    assert x.item() == pytest.approx(0.4794255)
    assert x._version > version
    assert sin_._opoverload._schema.is_mutable


def test_what_an_operator_writes_keeps_its_history(namespace):
    """As in PyTorch: the version counter alone says that it was written."""

    @custom_op(f"{namespace}::twice_", mutates_args={"x"})
    def twice_(x: Tensor) -> None:
        x.mul_(2)

    leaf = taeda.ones(2, requires_grad=True)
    assert twice_(leaf) is None and leaf.is_leaf and leaf.tolist() == [2.0, 2.0]
    y = leaf * 3
    twice_(y)
    y.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0] and y.tolist() == [12.0, 12.0]
    z = leaf.exp()
    twice_(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    twice_(leaf[:1])
    assert leaf.tolist() == [4.0, 2.0]


def test_results_may_not_be_arguments(namespace):
    @custom_op(f"{namespace}::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(taeda.ones(2))


def test_a_missing_gradient_or_fake_is_named(namespace):
    @custom_op(f"{namespace}::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x * 2

    x = taeda.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        f(x).backward()
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        f(taeda.ones(1, device="meta"))


def test_kernels_by_device(namespace):
    @custom_op(f"{namespace}::where", mutates_args=(), device_types="cpu")
    def where(x: Tensor) -> Tensor:
        return x + 1

    @where.register_kernel("meta")
    def _(x):
        return taeda.empty_like(x)

    assert where(taeda.zeros(1)).item() == 1
    assert where(taeda.zeros(1, device="meta")).device.type == "meta"
    with pytest.raises(ValueError, match="no device type"):
        where.register_kernel("tpu")


def test_autocast_and_vmap_rules(namespace):
    @custom_op(f"{namespace}::f", mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x.clone()

    f.register_autocast("cpu", taeda.bfloat16)
    assert f(taeda.ones(1)).dtype == taeda.float32
    with taeda.autocast("cpu"):
        assert f(taeda.ones(1)).dtype == taeda.bfloat16

    @f.register_vmap
    def rule(info, in_dims, x):
        return x, in_dims[0]

    assert f._vmap is rule


def test_a_redefinition_replaces_the_operator(namespace):
    for factor in (2.0, 3.0):

        @custom_op(f"{namespace}::f", mutates_args=())
        def f(x: Tensor) -> Tensor:
            return x * factor  # noqa: B023

        assert f(taeda.ones(1)).item() == factor


def test_a_schema_that_disagrees_is_refused(namespace):
    with pytest.raises(ValueError, match="mutates_args"):
        custom_op(f"{namespace}::f", lambda x: x, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("f", lambda x: x, mutates_args=())


def test_wrong_libraries():
    with pytest.raises(ValueError, match=r"^Unsupported kind: B$"):
        Library("a", "B")
    with pytest.raises(ValueError, match=r"^prim is a reserved namespace"):
        Library("prim", "DEF")


def test_triton_is_refused_clearly():
    with pytest.raises(NotImplementedError, match="Triton"):
        taeda.library.triton_op("a::b", lambda x: x, mutates_args=())


# --- opcheck ---


def test_opcheck_finds_an_undeclared_write(namespace):
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x.add_(1).clone(), "CPU")
    with pytest.raises(taeda.library._OpCheckError, match="not defined as mutable but was mutated"):
        opcheck(ops(namespace).f.default, (taeda.ones(2),), test_utils="test_schema")


#: Operators, and what PyTorch's opcheck says of them: which of its tests fail.
CHECKED = {}


def checked(fake=None, mutates=()):
    """A decorator: a function of (framework) that gives the function of a custom operator."""

    def keep(make):
        CHECKED[make.__name__] = make, fake, mutates
        return make

    return keep


@checked(fake=lambda t: t.empty_like)
def right(t):
    return lambda x: x.sin()


@checked()
def without_fake(t):
    return lambda x: x.sin()


def not_worked_out(x):
    raise NotImplementedError("sizes of this are not worked out yet")


@checked(fake=lambda t: not_worked_out)
def fake_not_implemented(t):
    return lambda x: x.sin()


@checked(fake=lambda t: lambda x: x.new_empty(7))
def fake_of_another_shape(t):
    return lambda x: x.sin()


@checked(fake=lambda t: lambda x: x.new_empty(x.shape, dtype=t.float64))
def fake_of_another_dtype(t):
    return lambda x: x.sin()


@checked(fake=lambda t: t.empty_like)
def fake_of_other_strides(t):
    return lambda x: x.sin().t().contiguous().t()


@checked(fake=lambda t: t.empty_like)
def undeclared_write(t):
    return lambda x: x.add_(1).sin()


@checked(fake=lambda t: t.empty_like)
def result_is_the_argument(t):
    return lambda x: x


@checked(fake=lambda t: t.empty_like)
def result_is_a_view(t):
    return lambda x: x.view(-1).view(x.shape)


@checked(fake=lambda t: lambda x: x.new_empty(int(x.sum().item())))
def fake_reads_values(t):
    return lambda x: x.new_zeros(int(x.sum().item()))


def refuse(x):
    raise ValueError("the kernel said no")


@checked(fake=lambda t: t.empty_like)
def kernel_raises(t):
    return refuse


@checked(fake=lambda t: lambda x: int("three"))
def fake_raises(t):
    return lambda x: x.sin()


def verdicts(t, namespace, name):
    make, fake, mutates = CHECKED[name]
    function = make(t)
    op = t.library.custom_op(
        f"{namespace}::{name}", function, mutates_args=mutates, schema="(Tensor x) -> Tensor"
    )
    if fake:
        op.register_fake(fake(t))
    found = {}
    for grad in (False, True):
        x = t.ones(3, 2).requires_grad_(grad)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        found[grad] = t.library.opcheck(op, (x,), raise_exception=False, test_utils=tests)
    return found


@pytest.mark.parametrize("name", CHECKED)
def test_opchecks_verdicts_are_pytorchs(namespace, name):
    torch = pytest.importorskip("torch")
    ours, theirs = (verdicts(t, namespace, name) for t in (taeda, torch))
    for grad in (False, True):
        passed = {test: result == "SUCCESS" for test, result in ours[grad].items()}
        assert passed == {test: result == "SUCCESS" for test, result in theirs[grad].items()}


def crashing(ctx, grad):
    raise ValueError("the backward said no")


#: Backward functions of an operator of one argument that it saves.
BACKWARDS = {
    "right": lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
    "crashes": crashing,
    "reads values": lambda ctx, grad: grad * grad.sum().item(),
    "another shape": lambda ctx, grad: grad.sum().view(1, 1, 1),
    "no gradient": lambda ctx, grad: None,
    "too many": lambda ctx, grad: (grad, grad),
    "not saved": lambda ctx, grad: grad * ctx.saved_tensors[3],
    "none registered": None,
}


def backward_verdicts(t, namespace, name, test):
    op = t.library.custom_op(
        f"{namespace}::sine", lambda x: x.sin(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_fake(t.empty_like)
    if BACKWARDS[name]:
        save = lambda ctx, inputs, output: ctx.save_for_backward(*inputs)  # noqa: E731
        op.register_autograd(BACKWARDS[name], setup_context=save)
    arguments = [t.ones(3, 2).requires_grad_(grad) for grad in (False, True)]
    checks = [
        t.library.opcheck(op, (x,), raise_exception=False, test_utils=test) for x in arguments
    ]
    return [check[test] == "SUCCESS" for check in checks]


@pytest.mark.parametrize("test", ["test_aot_dispatch_static", "test_aot_dispatch_dynamic"])
@pytest.mark.parametrize("name", BACKWARDS)
def test_opcheck_runs_the_backward_as_pytorchs_does(namespace, name, test):
    if name == "reads values" and test.endswith("dynamic"):
        pytest.skip("a number that is not known yet stands for the value in PyTorch")
    torch = pytest.importorskip("torch")
    ours, theirs = (backward_verdicts(t, namespace, name, test) for t in (taeda, torch))
    assert ours == theirs


def test_opcheck_raises_what_a_backward_raises(namespace):
    op = custom_op(
        f"{namespace}::f", lambda x: x.sin(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_fake(taeda.empty_like)
    op.register_autograd(crashing)
    with pytest.raises(taeda.library._OpCheckError, match="the backward said no"):
        opcheck(op, (taeda.ones(2, requires_grad=True),))


def test_opcheck_says_only_of_a_missing_fake_that_it_is_missing(namespace):
    missing = verdicts(taeda, namespace, "without_fake")[False]["test_faketensor"]
    assert "has no fake implementation; add one with torch.library.register_fake" in str(missing)
    raised = verdicts(taeda, namespace, "fake_not_implemented")[False]["test_faketensor"]
    assert isinstance(raised, NotImplementedError)
    assert str(raised) == "sizes of this are not worked out yet"
    shape = verdicts(taeda, namespace, "fake_of_another_shape")[False]["test_faketensor"]
    assert "gives a tensor of shape torch.Size([3, 2]), its fake implementation of" in str(shape)


def test_opcheck_finds_a_missing_gradient_and_a_wrong_fake(namespace):
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x.detach()[:1].clone(), "CPU")
    x = taeda.ones(2, requires_grad=True)
    op = ops(namespace).f.default
    with pytest.raises(taeda.library._OpCheckError, match="register_autograd"):
        opcheck(op, (x,), test_utils="test_autograd_registration")
    with pytest.raises(taeda.library._OpCheckError, match="no fake implementation"):
        opcheck(op, (x,), test_utils="test_faketensor")
    library.impl("f", lambda x: taeda.empty_like(x), "Meta")
    found = opcheck(op, (x,), raise_exception=False)
    assert found["test_schema"] == "SUCCESS"
    assert "shape" in str(found["test_faketensor"])


# --- infer_schema ---


def _prototypes(framework):
    tensor = framework.Tensor

    def plain(x: tensor, n: int, *, eps: float = 1e-5) -> tensor: ...
    def optional(x: tensor | None, s: str = "a", b: bool = False) -> tuple[tensor, tensor]: ...
    def lists(xs: list[tensor], ns: list[int] | None = None) -> list[tensor]: ...
    def nothing(x: tensor) -> None: ...
    def scalars(c: int | float | bool, d: framework.dtype, v: framework.device) -> int: ...

    return [plain, optional, lists, nothing, scalars]


@pytest.mark.parametrize("i", range(5))
def test_schemas_are_inferred_as_pytorch_does(i):
    torch = pytest.importorskip("torch")
    from torch.library import infer_schema as theirs

    assert infer_schema(_prototypes(taeda)[i], mutates_args=()) == theirs(
        _prototypes(torch)[i], mutates_args=()
    )


@pytest.mark.parametrize("mutates", [("x",), "unknown"])
def test_written_arguments_are_inferred_as_pytorch_does(mutates):
    torch = pytest.importorskip("torch")
    from torch.library import infer_schema as theirs

    for mine, other in zip(_prototypes(taeda), _prototypes(torch)):
        if mutates == ("x",) and mine.__name__ not in ("plain", "nothing"):
            continue
        assert infer_schema(mine, mutates_args=mutates) == theirs(other, mutates_args=mutates)


def test_annotations_that_no_schema_has_are_refused():
    def varargs(*xs: Tensor) -> Tensor: ...
    def bare(x) -> Tensor: ...
    def strange(x: object) -> Tensor: ...
    def no_result(x: Tensor): ...

    for function in (varargs, bare, strange, no_result):
        with pytest.raises(ValueError, match="infer_schema"):
            infer_schema(function, mutates_args=())


def test_numbers_are_no_tensors_for_a_programs_operators(namespace):
    library = Library(namespace, "DEF")
    library.define("sine(Tensor x, Scalar by=1) -> Tensor")
    library.impl("sine", lambda x, by=1: x.sin() * by, "CPU")
    for call in (ops(namespace).sine, ops(namespace).sine.default):
        with pytest.raises(
            RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"
        ):
            call(3)
        assert call(taeda.zeros(1), 3).tolist() == [0.0]
    assert taeda.ops.aten.add.Tensor(taeda.zeros(1), 3).tolist() == [3.0]


# --- register_torch_dispatch ---


def dispatch_classes(package):
    """A mode and a wrapper subclass that pass everything on, of taeda or PyTorch."""
    from importlib import import_module

    dispatch = import_module(f"{package.__name__}.utils._python_dispatch")
    pytree = import_module(f"{package.__name__}.utils._pytree")

    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Wrapper(package.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = package.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args = pytree.tree_map(lambda a: a.inner if isinstance(a, cls) else a, args)
            return cls(func(*args, **(kwargs or {})))

    return Mode, Wrapper


def rules_of(package, namespace):
    """What register_torch_dispatch changes, as a list of plain values."""
    Mode, Wrapper = dispatch_classes(package)

    def twice(x: package.Tensor) -> package.Tensor:
        return x * 2

    op = package.library.custom_op(f"{namespace}::twice", twice, mutates_args=())
    seen = []

    @op.register_torch_dispatch(Mode)
    def _(mode, func, types, args, kwargs):
        seen.append((type(mode).__name__, str(func).rpartition(".")[0][-5:], len(types)))
        return args[0] + 100

    def rule(cls, func, types, args, kwargs):
        seen.append((cls.__name__, len(types), kwargs))
        return cls(args[0].inner + 200)

    package.library.register_torch_dispatch(f"{namespace}::twice", Wrapper, rule)
    x = package.ones(2)
    seen.append(op(x).tolist())
    with Mode():
        seen.append(op(x).tolist())
        seen.append((x + 1).tolist())
    seen.append(op(Wrapper(x)).inner.tolist())
    seen.append((Wrapper(x) + 1).inner.tolist())

    class Derived(Mode):
        pass

    with Derived():
        seen.append(op(x).tolist())  # a rule is for its class alone
    op.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: args[0] + 300)
    with Mode():
        seen.append(op(x).tolist())
    library = package.library.Library(namespace, "FRAGMENT")
    library.define("plain(Tensor x) -> Tensor")
    package.library.register_torch_dispatch(f"{namespace}::plain", Mode, rule, lib=library)
    with pytest.raises(RuntimeError, match="already has a `__torch_dispatch__` rule"):
        package.library.register_torch_dispatch(f"{namespace}::plain", Mode, rule, lib=library)
    package.library.custom_op(f"{namespace}::twice", twice, mutates_args=())
    with Mode():
        seen.append(getattr(package.ops, namespace).twice(x).tolist())  # made anew: no rules
    return seen


def test_register_torch_dispatch(namespace):
    mine = rules_of(taeda, namespace)
    assert mine[0] == [2.0, 2.0] and [101.0, 101.0] in mine and [201.0, 201.0] in mine
    torch = pytest.importorskip("torch")
    assert mine == rules_of(torch, namespace)


def test_register_torch_dispatch_of_an_operator_of_the_table(namespace):
    Mode, _ = dispatch_classes(taeda)
    library = Library("aten", "FRAGMENT")
    taeda.library.register_torch_dispatch(
        "aten::relu", Mode, lambda mode, func, types, args, kwargs: func(*args) + 1, lib=library
    )
    x = taeda.tensor([-1.0, 1.0])
    with Mode():
        assert taeda.relu(x).tolist() == [1.0, 2.0]
    library._destroy()
    with Mode():
        assert taeda.relu(x).tolist() == [0.0, 1.0]


def test_a_library_that_ends_gives_back_the_kernel_that_it_covered(namespace):
    first = Library(namespace, "DEF")
    first.define("f(Tensor x) -> Tensor")
    first.impl("f", lambda x: x + 1, "CPU")
    second, third = (Library(namespace, "IMPL") for _ in range(2))
    second.impl("f", lambda x: x + 2, "CPU")
    third.impl("f", lambda x: x + 3, "CPU")
    op, x = getattr(taeda.ops, namespace).f, taeda.zeros(1)
    assert op(x).item() == 3
    second._destroy()
    assert op(x).item() == 3
    third._destroy()
    assert op(x).item() == 1
    first._destroy()


def test_dtypes_and_devices_are_defaults_of_custom_operators(namespace):
    def cast(
        x: taeda.Tensor,
        dtype: taeda.dtype = taeda.float32,
        device: taeda.device = taeda.device("cpu"),
    ) -> taeda.Tensor:
        return x.to(device, dtype, copy=True)

    schema = taeda.library.infer_schema(cast, mutates_args=())
    assert schema == '(Tensor x, ScalarType dtype=float32, Device device="cpu") -> Tensor'
    op = custom_op(f"{namespace}::cast", cast, mutates_args=())
    assert op(taeda.ones(2, dtype=taeda.int64)).dtype is taeda.float32
    assert op(taeda.ones(2), taeda.int8).dtype is taeda.int8
    with pytest.raises(RuntimeError, match="no dtype has this name"):
        Library(namespace, "FRAGMENT").define("g(Tensor x, ScalarType d=float33) -> Tensor")


def test_types_of_values_say_their_module():
    for kind in (taeda.dtype, taeda.layout, taeda.memory_format):
        assert kind.__module__ == "taeda"

    def f(dtype: taeda.dtype = taeda.float32): ...

    assert str(inspect.signature(f)).endswith("dtype = torch.float32)")


def test_register_torch_dispatch_wants_a_class(namespace):
    op = custom_op(f"{namespace}::same", lambda x: x.clone(), mutates_args=(),
                   schema="(Tensor x) -> Tensor")  # fmt: skip
    with pytest.raises(TypeError, match="expected a class with __torch_dispatch__, got 3"):
        op.register_torch_dispatch(3, lambda *args: None)
    with pytest.raises(RuntimeError, match="does not exist"):
        taeda.library.register_torch_dispatch(f"{namespace}::nope", dispatch_classes(taeda)[0],
                                              lambda *args: None)  # fmt: skip


def test_a_namespace_is_defined_once():
    with _scoped_library("test_library_once", "DEF") as first:
        first.define("f(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
            Library("test_library_once", "DEF")
        Library("test_library_once", "FRAGMENT").define("g(Tensor x) -> Tensor")
        first.impl("f", lambda x: x + 1, "CPU")
        first.impl("f", lambda x: x + 2, "CPU", allow_override=True)
        assert taeda.ops.test_library_once.f(taeda.zeros(1)).item() == 2
    with _scoped_library("test_library_once", "DEF"):
        pass


# --- before it is defined, tags, sizes that depend on values ---


def test_kernels_may_come_before_the_definition(namespace):
    first, second = Library(namespace, "IMPL"), Library(namespace, "IMPL")
    first.impl("f", lambda x: x * 2, "CPU")
    second.impl("f.two", lambda x, y: x * y, "CompositeImplicitAutograd")
    taeda.library.impl(f"{namespace}::g", "cpu", lambda x: x + 1)
    assert not hasattr(ops(namespace), "f")
    library = Library(namespace, "DEF")
    for schema in ("f(Tensor x) -> Tensor", "f.two(Tensor x, Tensor y) -> Tensor"):
        library.define(schema)
    taeda.library.define(f"{namespace}::g", "(Tensor x) -> Tensor", lib=library)
    x = taeda.full((2,), 3.0)
    assert ops(namespace).f(x).tolist() == [6.0, 6.0]
    assert ops(namespace).f.two(x, x).tolist() == [9.0, 9.0]
    assert ops(namespace).g(x).tolist() == [4.0, 4.0]
    first._destroy()
    with pytest.raises(NotImplementedError, match="no kernel was registered"):
        ops(namespace).f(x)


def test_a_kernel_of_a_library_that_is_gone_is_not_given_later(namespace):
    gone = Library(namespace, "IMPL")
    gone.impl("f", lambda x: x * 2, "CPU")
    gone._destroy()
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel was registered"):
        ops(namespace).f(taeda.ones(2))


def test_shapes_and_the_tables_operators_cannot_wait(namespace):
    library = Library(namespace, "IMPL")
    with pytest.raises(RuntimeError, match=f"operator {namespace}::f does not exist"):
        library.impl("f", lambda x: x, "Meta")
    with pytest.raises(RuntimeError, match="operator aten::no_such_one does not exist"):
        Library("aten", "IMPL").impl("no_such_one", lambda x: x, "CPU")
    with pytest.raises(
        RuntimeError, match="Cannot define an operator inside of a TORCH_LIBRARY_IM"
    ):
        library.define("f(Tensor x) -> Tensor")


# Those out= and in-place forms that PyTorch tags in another way than the plain ones.
TAGGED_OTHERWISE = {
    *("all.all_out", "conj_physical.out", "conj_physical_.default", "index.Tensor_out", "max.out"),
    *("min.out", "narrow_copy.out", "norm.dtype_out"),
}


def test_tags_are_pytorchs():
    torch = pytest.importorskip("torch")
    assert [tag.name for tag in taeda.Tag] == list(torch.Tag.__members__)
    assert [int(tag) for tag in taeda.Tag] == [int(tag) for tag in torch.Tag.__members__.values()]
    assert taeda.Tag.core != 0
    compared = 0
    # Left out: `generated`, which says how PyTorch's sources come about (such out= variants have no
    # other tags), and `pointwise`, which it does not say of some in-place and out= forms.
    known = {*torch.Tag.__members__} - {"generated", "pointwise"}
    for name in sorted({s.name for s in torch._C._jit_get_all_schemas()}):
        if not name.startswith("aten::"):
            continue
        name = name.removeprefix("aten::")
        ours, theirs = getattr(taeda.ops.aten, name, None), getattr(torch.ops.aten, name, None)
        if not hasattr(theirs, "overloads") or not hasattr(ours, "overloads"):
            continue
        for overload in set(ours.overloads()) & set(theirs.overloads()):
            found = {tag.name for tag in getattr(ours, overload).tags} & known
            said = {tag.name for tag in getattr(theirs, overload).tags}
            composed = getattr(ours, overload)._is_registered  # in Python, of others
            if "generated" in said or composed or f"{name}.{overload}" in TAGGED_OTHERWISE:
                continue
            assert found == said & known, (name, overload)
            compared += 1
    assert compared > 900


def test_tags_of_a_programs_operators(namespace):
    Tag = taeda.Tag
    library = Library(namespace, "DEF")
    library.define("f(Tensor x) -> Tensor", tags=Tag.pointwise)
    library.define("f.two(Tensor x) -> Tensor", tags=(Tag.pt2_compliant_tag, Tag.core))
    library.define("g(Tensor x) -> Tensor")
    assert ops(namespace).f.default.tags == [Tag.pointwise]
    assert ops(namespace).f.two.tags == [Tag.core, Tag.pt2_compliant_tag]
    assert ops(namespace).g.default.tags == []
    with pytest.raises(TypeError, match=r"tags must be torch\.Tag or a sequence of them, got 'x'"):
        library.define("h(Tensor x) -> Tensor", tags="x")
    library._destroy()
    again = Library(namespace, "DEF")
    again.define("f(Tensor x) -> Tensor")
    assert ops(namespace).f.default.tags == []

    @custom_op(f"{namespace}::made", mutates_args=(), tags=[Tag.pointwise])
    def made(x: Tensor) -> Tensor:
        return x + 1

    assert ops(namespace).made.default.tags == [Tag.pointwise, Tag.pt2_compliant_tag]


def test_a_fake_implementation_asks_for_a_size_that_depends_on_values(namespace):
    from taeda._subclasses import DynamicOutputShapeException, FakeTensorMode

    @custom_op(f"{namespace}::nonzero_of", mutates_args=())
    def nonzero_of(x: Tensor) -> Tensor:
        return x.nonzero()

    @nonzero_of.register_fake
    def _(x):
        count = taeda.library.get_ctx().new_dynamic_size()
        return x.new_empty((count, x.dim()), dtype=taeda.int64)

    assert taeda.library.get_ctx() is None
    with pytest.raises(RuntimeError, match="trying to run this operator with meta Tensors"):
        nonzero_of(taeda.ones(3, device="meta"))
    assert taeda.library.get_ctx() is None
    with FakeTensorMode() as mode, pytest.raises(DynamicOutputShapeException):
        nonzero_of(mode.from_tensor(taeda.ones(3)))
    assert set(opcheck(nonzero_of, (taeda.ones(3),)).values()) == {"SUCCESS"}
    library = Library(namespace, "FRAGMENT")
    library.define("same(Tensor x) -> Tensor")
    seen = []

    @taeda.library.register_fake(f"{namespace}::same", lib=library)
    def _(x):
        seen.append(taeda.library.get_ctx())
        return taeda.empty_like(x)

    ops(namespace).same(taeda.ones(2, device="meta"))
    assert seen[0] is not None


def test_the_first_interface_of_own_operators():
    from taeda import _custom_ops

    @_custom_ops.custom_op("first_interface::cube")
    def cube(x: taeda.Tensor) -> taeda.Tensor:
        raise NotImplementedError

    _custom_ops.impl("first_interface::cube", device_types="cpu", func=lambda x: x**3)
    _custom_ops.impl_abstract("first_interface::cube", func=taeda.empty_like)
    operator = taeda.ops.first_interface.cube
    assert operator(taeda.tensor([2.0])).tolist() == [8.0]
    assert operator(taeda.empty(3, device="meta")).shape == (3,)
    save, backward = _custom_ops.impl_save_for_backward, _custom_ops.impl_backward
    save("first_interface::cube", func=lambda inputs, output: {"x": inputs.x, "factor": 3})
    backward(
        "first_interface::cube",
        func=lambda ctx, saved, g: {"x": g * saved["factor"] * saved["x"] ** 2},
    )
    x = taeda.tensor([2.0, -1.0], requires_grad=True)
    operator(x).sum().backward()
    assert x.grad.tolist() == [12.0, 3.0]

    _custom_ops.custom_op("first_interface::twice", "(Tensor x, int n=2) -> Tensor")
    _custom_ops.impl("first_interface::twice")(lambda x, n=2: x * n)
    assert taeda.ops.first_interface.twice(taeda.ones(1)).tolist() == [2.0]
    with pytest.raises(ValueError, match="expected `func` to have name 'other'"):
        _custom_ops.custom_op("first_interface::other", cube)
    with pytest.raises(ValueError, match="namespace::name"):
        _custom_ops.custom_op("other")
