"""TorchDispatchMode and classes with a __torch_dispatch__, compared with PyTorch's."""

import gc
import importlib
import io
import pickle
import threading

import pytest

import taeda
from taeda._library.aten import SPELLINGS
from taeda.utils._mode_utils import no_dispatch
from taeda.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = taeda.ops.aten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        return [str(func) for func, *_ in self.calls]


# --- modes ---


def test_a_mode_sees_operators_with_their_arguments():
    x = taeda.tensor([1.0, 2.0])
    with Log() as log:
        y = x + 1
        z = taeda.softmax(y, 0)
        x.add_(1)
    assert log.names == ["aten.add.Tensor", "aten._softmax.default", "aten.add_.Tensor"]
    func, types, args, kwargs = log.calls[0]
    assert func is aten.add.Tensor
    assert types == ()
    assert args[0] is x
    assert args[1] == 1  # the number, not a tensor of it
    assert kwargs == {}
    assert z.sum().item() == pytest.approx(1)
    before = len(log.calls)
    x + 1
    assert len(log.calls) == before


def test_arguments_with_their_default_are_left_out():
    x = taeda.ones(2)
    with Log() as log:
        taeda.add(x, x)
        taeda.add(x, x, alpha=2)
        taeda.cumsum(x, 0, dtype=taeda.float64)
    assert log.calls[0][3] == {}
    assert log.calls[1][3] == {"alpha": 2}
    assert log.calls[2][3] == {"dtype": taeda.float64}


def test_a_mode_may_answer_itself():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 0 if func is aten.mul.Tensor else result

    x = taeda.tensor([1.0, 2.0])
    with Zeros():
        assert (x * x).tolist() == [0.0, 0.0]


def test_modes_nest_the_innermost_first():
    order = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2)
    with Named("outer"), Named("inner") as inner:
        assert _get_current_dispatch_mode() is inner
        x + x
        with _disable_current_modes():
            x + x
        with no_dispatch():
            x + x
    assert order == ["inner", "outer"]
    assert _get_current_dispatch_mode() is None


def test_factories_are_seen():
    with Log() as log:
        taeda.zeros(2)
        taeda.arange(3)
        taeda.rand(2)
        taeda.zeros_like(taeda.ones(1))
    assert "aten.zeros.default" in log.names
    assert "aten.arange.default" in log.names
    assert "aten.rand.default" in log.names
    assert log.names[-1] == "aten.zeros_like.default"


def test_backward_is_seen_and_gradients_are_the_same():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with Log() as log:
        (x * x).sum().backward()
    assert log.names[0] == "aten.mul.Tensor"
    assert log.names.count("aten.mul.Tensor") == 3
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", ["vmap", "jacfwd", "functionalize", "vmap of grad"])
def test_a_mode_entered_inside_of_a_transform_sees_operators(name):
    transform = {
        "vmap": taeda.vmap,
        "jacfwd": taeda.func.jacfwd,
        "functionalize": taeda.func.functionalize,
        "vmap of grad": lambda f: taeda.vmap(taeda.func.grad(f)),
    }[name]
    log = Log()

    def f(x):
        with log:
            y = x.sin()
        return y.tan().sum()

    transform(f)(taeda.ones(2, 3))
    assert "aten.sin.default" in log.names
    assert "aten.tan.default" not in log.names
    with Log() as outer:
        transform(lambda x: x.cos().sum())(taeda.ones(2, 3))
    assert "aten.cos.default" in outer.names


def test_an_error_in_the_handler_is_the_programs():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    x = taeda.ones(2)
    with pytest.raises(KeyError, match="mine"), Fails():
        x + x
    assert (x + x).tolist() == [2.0, 2.0]
    assert _get_current_dispatch_mode() is None


def test_a_wrong_result_is_an_error_that_names_the_operator():
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "text"

    x = taeda.ones(2)
    with pytest.raises(RuntimeError, match=r"aten::add.Tensor returned str"), Wrong():
        x + 1


def test_not_implemented_everywhere_is_a_type_error():
    class Declines(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = taeda.ones(2)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'aten::add\.Tensor'"):
        with Declines():
            x + x


def test_a_mode_belongs_to_its_thread():
    x = taeda.ones(2)
    with Log() as log:
        thread = threading.Thread(target=lambda: x + x)
        thread.start()
        thread.join()
    assert log.calls == []


def test_composite_operators_are_seen_as_what_they_are_made_of():
    x, y = taeda.ones(2, 3), taeda.ones(2, 3)
    with Log() as log:
        taeda.dist(x, y)
    assert "aten.dist.default" not in log.names
    assert log.names[0] == "aten.sub.Tensor"


def _mlp_step(framework, mode):
    """The operators of one training step of an MLP, as `mode` of a framework logs them."""
    framework.manual_seed(0)
    nn = framework.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = framework.ones(5, 3)
    names = []

    class Names(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names():
        model(x).sum().backward()
    return names


def test_a_training_step_is_made_of_pytorchs_operators_where_the_tables_agree():
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

    ours, theirs = _mlp_step(taeda, TorchDispatchMode), _mlp_step(torch, TheirMode)
    # The same work: both see the activation and the products of forward and backward. Linear layers
    # and gradients are one operator each in one table and several in the other
    # (docs/notes/dispatch.md).
    assert "aten.sum.default" in theirs
    assert any(name.startswith("aten.sum") for name in ours)
    assert any("relu" in name for name in ours)
    assert len(ours) <= len(theirs) + 2


# --- classes ---


class Wrapper(taeda.Tensor):
    """A tensor around another one that counts what is done with it."""

    calls: list = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = taeda.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner
        return made

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Wrapper(parts["inner"])

    def __repr__(self):
        return f"Wrapper({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from taeda.utils import _pytree as pytree

        cls.calls.append(str(func))

        def unwrap(value):
            return value.inner if isinstance(value, Wrapper) else value

        def wrap(value):
            return Wrapper(value) if isinstance(value, taeda.Tensor) else value

        plain, plain_kwargs = pytree.tree_map(unwrap, (args, kwargs or {}))
        result = pytree.tree_map(wrap, func(*plain, **plain_kwargs))
        return return_and_correct_aliasing(func, args, kwargs, result)


@pytest.fixture(autouse=True)
def _no_calls():
    Wrapper.calls.clear()


def test_a_wrapper_is_asked_for_every_operator():
    x = Wrapper(taeda.tensor([1.0, 2.0]))
    y = x * 2 + x
    assert type(y) is Wrapper
    assert y.inner.tolist() == [3.0, 6.0]
    assert Wrapper.calls == ["aten.mul.Tensor", "aten.add.Tensor"]
    assert (x.shape, x.dtype, x.device.type) == ((2,), taeda.float32, "cpu")


def test_a_wrappers_views_lists_and_several_results():
    x = Wrapper(taeda.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.t().inner.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x[0].inner.tolist() == [1.0, 2.0]
    assert [part.inner.tolist() for part in x.unbind(0)] == [[1.0, 2.0], [3.0, 4.0]]
    values, indices = x.max(1)
    assert values.inner.tolist() == [2.0, 4.0]
    assert indices.inner.tolist() == [1, 1]
    assert taeda.cat([x, x]).inner.shape == (4, 2)


def test_a_wrapper_written_in_place_stays_itself():
    x = Wrapper(taeda.tensor([1.0, 2.0]))
    version = x._version
    y = x.add_(1)
    assert y is x
    assert x.inner.tolist() == [2.0, 3.0]
    assert x._version > version


def test_gradients_of_a_wrapper():
    x = Wrapper(taeda.tensor([1.0, 2.0]), requires_grad=True)
    (x * x).sum().backward()
    assert type(x.grad) is Wrapper
    assert x.grad.inner.tolist() == [2.0, 4.0]


def test_gradients_of_a_wrapper_that_is_scaled_and_summed():
    x = Wrapper(taeda.tensor([1.0, 2.0]), requires_grad=True)
    (x * 3).sum().backward()
    assert type(x.grad) is Wrapper
    assert x.grad.inner.tolist() == [3.0, 3.0]
    assert {"aten.ones_like.default", "aten.expand.default", "aten.detach.default"} <= set(
        Wrapper.calls
    )
    two = Wrapper(taeda.tensor([5.0]), requires_grad=True)
    one = Wrapper(taeda.tensor([7.0]), requires_grad=True)
    (one + two).sum().backward()  # one gradient for both, not one tensor
    (one * 2).sum().backward()
    assert (one.grad.inner.tolist(), two.grad.inner.tolist()) == ([3.0], [1.0])


def test_values_of_a_wrapper():
    one, two = (Wrapper(taeda.tensor([value])) for value in (1.0, 2.0))
    assert (one.item(), float(two), int(two), bool(one - 1)) == (1.0, 2.0, 2, False)
    assert Wrapper.calls == ["aten._local_scalar_dense.default"] * 3 + [
        "aten.sub.Tensor", "aten._local_scalar_dense.default",
    ]  # fmt: skip
    Wrapper.calls.clear()
    assert taeda.equal(one, Wrapper(taeda.tensor([1.0]))) and not one.equal(two)
    assert Wrapper.calls == ["aten.equal.default"] * 2
    assert taeda.allclose(one, one) and [5, 6, 7][Wrapper(taeda.tensor(1))] == 6


def test_a_mode_sees_values_of_tensors():
    x = taeda.tensor([1.0])
    with Log() as log:
        assert x.item() == 1.0 and x and taeda.equal(x, x)
    value = "aten._local_scalar_dense.default"
    assert log.names == [value, value, "aten.equal.default"]

    class Seven(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 7 if func is aten._local_scalar_dense.default else func(*args, **(kwargs or {}))

    with Seven():
        assert x.item() == 7 and float(x) == 7.0 and bool(x * 0)
    assert aten._local_scalar_dense(x) == 1.0
    with pytest.raises(RuntimeError, match="data-dependent"):
        taeda.vmap(lambda x: taeda.equal(x, x))(taeda.ones(2, 3))


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (taeda.sigmoid, "sigmoid_backward"),
        (taeda.tanh, "tanh_backward"),
        (taeda.nn.functional.gelu, "gelu_backward"),
        (taeda.nn.functional.silu, "silu_backward"),
        (lambda x: x[0], "select_backward"),
    ],
)
def test_gradients_bear_pytorchs_names_where_the_arguments_are_the_same(run, name):
    torch = pytest.importorskip("torch")
    x = taeda.randn(2, 3, requires_grad=True)
    with Log() as log:
        run(x).sum().backward()
    (call,) = [c for c in log.calls if c[0] is getattr(aten, name).default]
    theirs = getattr(torch.ops.aten, name).default
    args = [torch.tensor(a.tolist()) if isinstance(a, taeda.Tensor) else a for a in call[2]]
    for ours, expected in zip(getattr(aten, name)(*call[2]).view(-1), theirs(*args).view(-1)):
        assert ours.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)


SPELLED = {
    "convolution": (
        lambda x, w, b: taeda.conv2d(x, w, b, groups=2),
        ["convolution", "convolution_backward"],
    ),
    "convolution without bias": (
        lambda x, w, b: taeda.conv_transpose2d(x[:, :3], w.view(3, 4, 3, 3), stride=2),
        ["convolution_backward"],
    ),
    "batch norm": (
        lambda x, w, b: taeda.nn.functional.batch_norm(
            x, taeda.zeros(4), taeda.ones(4), b[:4], b[2:], training=True
        ),
        ["native_batch_norm", "native_batch_norm_backward"],
    ),
    "batch norm, evaluated": (
        lambda x, w, b: taeda.nn.functional.batch_norm(x, taeda.ones(4), taeda.ones(4), b[:4]),
        ["native_batch_norm", "native_batch_norm_backward"],
    ),
    "layer norm": (
        lambda x, w, b: taeda.nn.functional.layer_norm(x[..., :4], (4,), b[:4], b[2:]),
        ["native_layer_norm", "native_layer_norm_backward"],
    ),
    "group norm": (
        lambda x, w, b: taeda.nn.functional.group_norm(x, 2, b[:4]),
        ["native_group_norm", "native_group_norm_backward"],
    ),
    "softmax": (
        lambda x, w, b: x.softmax(1) + x.log_softmax(1),
        ["_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"],
    ),
    "linear": (
        lambda x, w, b: taeda.nn.functional.linear(x[..., :3], w[:, 0, 0], b),
        ["addmm", "mm"],
    ),
    "linear without bias": (
        lambda x, w, b: taeda.nn.functional.linear(x[0, 0, :, :3], w[:, 1, 0]),
        ["mm"],
    ),
    "linear of a vector": (
        lambda x, w, b: taeda.nn.functional.linear(x[0, 0, 0, :3], w[:, 1, 0], b),
        ["addmm"],
    ),
    "attention": (
        lambda x, w, b: taeda.nn.functional.scaled_dot_product_attention(x, x * 2, x + 1),
        [
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention_for_cpu_backward",
        ],
    ),
    "dropout": (
        lambda x, w, b: (taeda.manual_seed(3), taeda.nn.functional.dropout(x, 0.25))[1],
        ["native_dropout", "native_dropout_backward"],
    ),
    "norms": (
        lambda x, w, b: (
            x.norm() + x.logsumexp(1).sum() + x.var() + x.std(1).sum() + w.norm(3, 1).sum()
        ),
        ["linalg_vector_norm", "logsumexp"],
    ),
    "clamp": (
        lambda x, w, b: x.clamp(-0.5, 0.5) + x.where(x > 0, 2 * x),
        ["clamp"],
    ),
    "factorizations": (
        lambda x, w, b: (
            taeda.linalg.inv(x[0]).sum()
            + taeda.linalg.svdvals(x[0]).sum()
            + taeda.linalg.eigh(x[0] + x[0].mT)[0].prod()
            + taeda.linalg.cholesky(x[0] @ x[0].mT + taeda.eye(5)).sum()
        ),
        ["linalg_inv_ex", "_linalg_svd", "_linalg_eigh", "linalg_cholesky_ex"],
    ),
    "adaptive pooling": (
        lambda x, w, b: taeda.nn.functional.adaptive_avg_pool2d(x, 2),
        ["_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"],
    ),
    "activations": (
        lambda x, w, b: taeda.nn.functional.leaky_relu(x, 0.2) + taeda.nn.functional.softplus(x),
        ["leaky_relu_backward", "softplus_backward"],
    ),
    "average pooling": (
        lambda x, w, b: taeda.nn.functional.avg_pool2d(x, 2, 1, 1, divisor_override=3),
        ["avg_pool2d", "avg_pool2d_backward"],
    ),
}


@pytest.mark.parametrize("name", SPELLED)
def test_calls_are_spelled_as_pytorch_spells_them(name):
    """The operators' names, that their schemas are PyTorch's, and that they compute the same."""
    torch = pytest.importorskip("torch")
    f, names = SPELLED[name]
    taeda.manual_seed(0)
    given = [taeda.randn(2, 4, 5, 5), taeda.randn(6, 2, 3, 3), taeda.randn(6)]

    def gradients():
        leaves = [x.clone().requires_grad_() for x in given]
        f(*leaves).square().sum().backward()
        return [x.grad for x in leaves if x.grad is not None]

    expected = gradients()
    with Log() as outer, Log() as log:
        found = gradients()
    for ours, theirs in zip(found, expected):
        taeda.testing.assert_close(ours, theirs)
    for one in names:
        call = next(c for c in log.calls if c[0] is getattr(aten, one).default)
        schema = getattr(torch.ops.aten, one).default._schema
        assert len(call[2]) <= len(schema.arguments)
        given_names = [a.name for a in call[0]._schema.arguments]
        if call[0]._is_registered:  # defined for the purpose
            assert given_names == [a.name for a in schema.arguments]
        assert getattr(aten, one).default in [c[0] for c in outer.calls]
    own = {key.replace("::", ".") + ".default" for key in SPELLINGS}
    assert not own & set(log.names) and not own & set(outer.names)


def test_a_wrapper_answers_for_spelled_calls():
    x, w = (Wrapper(taeda.randn(*s), requires_grad=True) for s in [(1, 2, 4, 4), (2, 2, 3, 3)])
    taeda.conv2d(x, w).sum().backward()
    assert Wrapper.calls.count("aten.convolution_backward.default") == 2
    plain, weight = (t.inner.clone().requires_grad_() for t in (x, w))
    taeda.conv2d(plain, weight).sum().backward()
    taeda.testing.assert_close(x.grad.inner, plain.grad)
    taeda.testing.assert_close(w.grad.inner, weight.grad)


def test_a_wrapper_has_no_memory():
    x = Wrapper(taeda.tensor([1.0, 2.0]))
    assert x.data_ptr() == 0
    with no_dispatch(), pytest.raises(RuntimeError, match="doesn't have storage"):
        x + 1


def test_a_mode_stands_before_a_class():
    x = Wrapper(taeda.tensor([1.0]))
    with Log() as log:
        x + x
    assert log.names[0] == "aten.add.Tensor"
    assert log.calls[0][1] == (Wrapper,)
    assert Wrapper.calls == ["aten.add.Tensor"]


def test_a_class_with_data_of_its_own():
    class Counting(taeda.Tensor):
        count = 0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.count += 1
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    x = taeda.tensor([1.0, 2.0]).as_subclass(Counting)
    assert (x + x).tolist() == [2.0, 4.0]
    assert Counting.count == 1


def test_traceable_wrappers_are_rebuilt_from_their_parts():
    x = Wrapper(taeda.tensor([1.0, 2.0]))
    assert is_traceable_wrapper_subclass(x)
    assert not is_traceable_wrapper_subclass(taeda.ones(1))
    y = transform_subclass(x, lambda name, part: part * 2)
    assert y.inner.tolist() == [2.0, 4.0]


def test_wrappers_are_collected():
    import weakref

    x = Wrapper(taeda.tensor([1.0]), requires_grad=True)
    y = x * x
    alive = weakref.ref(y)
    del x, y
    gc.collect()
    assert alive() is None


def test_a_wrapper_needs_a_torch_dispatch():
    class Plain(taeda.Tensor):
        pass

    with pytest.raises(RuntimeError, match="requires a __torch_dispatch__"):
        taeda.Tensor._make_wrapper_subclass(Plain, (2,))


def test_deep_backward_keeps_the_modes():
    """Backward inside hooks goes on, on a fresh thread once it is deep; the modes go along."""
    seen = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    def nested(depth):
        x = taeda.ones(1, requires_grad=True)

        def hook(grad):
            if depth:
                with taeda.enable_grad():
                    nested(depth - 1)

        y = x * 2
        y.register_hook(hook)
        y.backward()

    with Count():
        nested(70)
    assert sum(str(f).startswith("aten.mul.") for f in seen) >= 2 * 71


def test_a_wrapper_is_kept_with_what_it_wraps():
    x = Wrapper(taeda.arange(6.0).reshape(2, 3).T, requires_grad=True)
    stream = io.BytesIO()
    taeda.save({"x": x, "again": x}, stream)
    stream.seek(0)
    loaded = taeda.load(stream, weights_only=False)
    assert loaded["again"] is loaded["x"]
    for found in (loaded["x"], pickle.loads(pickle.dumps(x))):
        assert type(found) is Wrapper and found.requires_grad and found.stride() == x.stride()
        assert found.inner.tolist() == x.inner.tolist()


def test_conversions_are_copies_to_a_mode():
    with Log() as log:
        taeda.ones(2).int()
        taeda.ones(2).to(taeda.float64, memory_format=taeda.contiguous_format)
    copies = [(func, kwargs) for func, _, _, kwargs in log.calls if "ones" not in str(func)]
    assert [func for func, _ in copies] == [aten._to_copy.default] * 2
    assert [kwargs["dtype"] for _, kwargs in copies] == [taeda.int32, taeda.float64]


def test_the_core_tells_which_tensors_dispatch():
    class Plain(taeda.Tensor):
        pass

    class Dispatching(taeda.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2)
    asked = [x, taeda.nn.Parameter(x), x.as_subclass(Plain), x.as_subclass(Dispatching), 3, None]
    assert [taeda._C._has_torch_dispatch(each) for each in asked] == [
        False, False, False, True, False, False,
    ]  # fmt: skip


OPERATORS = [
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_safe_softmax",
    "nll_loss_forward",
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_lists_of_what_is_kept_name(name):
    torch = pytest.importorskip("torch")
    here, theirs = (getattr(of.ops.aten, name).default._schema for of in (taeda, torch))
    assert [a.name for a in here.arguments] == [a.name for a in theirs.arguments]
    assert len(here.returns) == len(theirs.returns)


def test_what_only_cuda_devices_run_says_what_to_use():
    x = taeda.zeros(1, 1, 2, 2)
    with pytest.raises(NotImplementedError, match="scaled_dot_product_attention runs on every"):
        aten._scaled_dot_product_flash_attention(x, x, x)


@pytest.mark.parametrize("kind", ["plain", "causal", "masked", "dropped", "grouped"])
def test_attention_by_its_definition(kind):
    torch = pytest.importorskip("torch")
    taeda.manual_seed(0)
    q, k, v = taeda.randn(3, 2, 4, 5, 8)
    kwargs = {
        "plain": {"scale": 0.3},
        "causal": {"is_causal": True},
        "masked": {"attn_mask": taeda.randn(5, 5)},
        "dropped": {"dropout_p": 0.5, "dropout_mask": taeda.rand(2, 4, 5, 5) > 0.5},
        "grouped": {"enable_gqa": True},
    }[kind]
    if kind == "grouped":
        k, v = k[:, :2], v[:, :2]
    across = lambda t: torch.tensor(t.numpy()) if isinstance(t, taeda.Tensor) else t  # noqa: E731
    found = aten._scaled_dot_product_attention_math(q, k, v, **kwargs)
    expected = torch.ops.aten._scaled_dot_product_attention_math(
        across(q), across(k), across(v), **{n: across(t) for n, t in kwargs.items()}
    )
    for mine, theirs in zip(found, expected, strict=True):
        taeda.testing.assert_close(mine, taeda.tensor(theirs.numpy()))


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll_loss_with_the_sum_of_its_weights(reduction):
    torch = pytest.importorskip("torch")
    x, weight = taeda.randn(6, 4), taeda.rand(4)
    target = taeda.tensor([0, 1, -100, 3, 2, 1])
    for w in (None, weight):
        found = aten.nll_loss_forward(x, target, w, reduction, -100)
        across = [None if t is None else torch.tensor(t.numpy()) for t in (x, target, w)]
        expected = torch.ops.aten.nll_loss_forward(*across, reduction, -100)
        for mine, theirs in zip(found, expected, strict=True):
            taeda.testing.assert_close(mine, taeda.tensor(theirs.numpy()))


# --- views of tensors without memory ---


def wrapper_class(t, strides):
    """A class of wrappers, which say the layouts of what they hold, or claim contiguous ones."""
    tree_map = importlib.import_module(f"{t.__name__}.utils._pytree").tree_map

    class Wrapper(t.Tensor):
        @staticmethod
        def __new__(cls, held):
            layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
            made = t.Tensor._make_wrapper_subclass(
                cls,
                held.shape,
                dtype=held.dtype,
                device=held.device,
                requires_grad=held.requires_grad,
                **(layout if strides else {}),
            )
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            def unwrap(x):
                return x.held if isinstance(x, Wrapper) else x

            def wrap(x):
                return cls(x) if isinstance(x, t.Tensor) and not isinstance(x, cls) else x

            args, kwargs = tree_map(unwrap, args), tree_map(unwrap, kwargs or {})
            return tree_map(wrap, func(*args, **kwargs))

    return Wrapper


WRITES = {
    "slice by a slice": lambda z: z[1:].mul_(z[:-1].clone()),
    "slice by a number": lambda z: z[1:].mul_(3.0),
    "element": lambda z: z.__setitem__(0, z[1] * 2),
    "row of a view": lambda z: z.view(2, 2)[0].mul_(z[2:].clone()),
    "column of a view": lambda z: z.view(2, 2)[:, 1].mul_(z[2:].clone()),
    "transposed": lambda z: z.view(2, 2).t()[1].mul_(z[2:].clone()),
    "whole": lambda z: z.mul_(z.clone()),
    "fill": lambda z: z[2].fill_(0.0),
    "zero": lambda z: z[1:3].zero_(),
    "steps": lambda z: z[::2].mul_(z[1::2].clone()),
    "diagonal": lambda z: z.view(2, 2).diagonal().mul_(z[:2].clone()),
    "view after the write": lambda z: (lambda v: (z.mul_(2.0), v.mul_(z[:2].clone())))(z[2:]),
    "copy": lambda z: z[2:].copy_(z[:2] * 3),
}


@pytest.mark.parametrize("strides", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_views_of_wrappers_have_the_gradients_of_plain_tensors(name, strides):
    def gradients(make):
        x = make(taeda.arange(1.0, 5.0)).requires_grad_()
        z = x * 1
        WRITES[name](z)
        (z * z).sum().backward()
        return [(t.held if hasattr(t, "held") else t).tolist() for t in (x.grad, z)]

    Wrapper = wrapper_class(taeda, strides)
    expected = gradients(taeda.clone)
    assert gradients(lambda x: Wrapper(x.clone())) == expected
    torch = pytest.importorskip("torch")
    x = torch.arange(1.0, 5.0).requires_grad_()
    z = x * 1
    WRITES[name](z)
    (z * z).sum().backward()
    assert [x.grad.tolist(), z.tolist()] == expected


# Not of what is transposed and claims to be contiguous: aten.view raises, in PyTorch as well.
@pytest.mark.parametrize("name", [name for name in WRITES if name != "transposed"])
def test_second_gradients_of_writes_to_views_of_wrappers(name):
    def gradients(make):
        x = make(taeda.arange(1.0, 5.0)).requires_grad_()
        z = x * x
        WRITES[name](z)
        (first,) = taeda.autograd.grad((z * z * z).sum(), x, create_graph=True)
        (second,) = taeda.autograd.grad((first * first).sum(), x)
        return [(t.held if hasattr(t, "held") else t).detach().tolist() for t in (first, second)]

    Wrapper = wrapper_class(taeda, strides=False)
    assert gradients(lambda x: Wrapper(x.clone())) == gradients(taeda.clone)


def test_a_views_history_follows_a_write_to_its_base_in_wrappers():
    def gradient(make):
        x = make(taeda.arange(1.0, 5.0)).requires_grad_()
        z = x * 1
        view, chunk = z[1:3], z.view(2, 2)[1]
        z.mul_(z.clone())
        ((view * view).sum() + chunk.sum()).backward()
        return (x.grad.held if hasattr(x.grad, "held") else x.grad).tolist()

    Wrapper = wrapper_class(taeda, strides=False)
    assert gradient(lambda x: Wrapper(x.clone())) == gradient(taeda.clone)


def test_the_gradient_of_a_wrapper_is_one():
    x = wrapper_class(taeda, strides=False)(taeda.arange(1.0, 5.0)).requires_grad_()
    z = x * 1
    z[1:].mul_(3.0)
    z.sum().backward()
    assert type(x.grad) is type(x)


# --- classes that answer for their sizes ---


def made_with(t, policy, **options):
    """An instance of 2 x 3 elements whose class says that it is 7 x 8."""
    answers = {"sym_size": (7, 8), "sym_stride": (8, 1), "sym_numel": 56, "dim": 2}
    asked = []

    class Sized(t.Tensor):
        @staticmethod
        def __new__(cls):
            make = t.Tensor._make_wrapper_subclass
            return make(cls, (2, 3), dispatch_sizes_strides_policy=policy, **options)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return answers.get(str(func).split(".")[1], NotImplemented)

    return Sized(), asked


@pytest.mark.parametrize("policy", [None, "strides", "sizes"])
def test_a_class_answers_for_its_sizes_and_strides(policy):
    torch = pytest.importorskip("torch")
    questions = {
        "shape": lambda x: tuple(x.shape),
        "size": lambda x: (tuple(x.size()), x.size(1), x.size(dim=0)),
        "stride": lambda x: (x.stride(), x.stride(0)),
        "numel": lambda x: (x.numel(), x.nelement()),
        "dim": lambda x: (x.dim(), x.ndim, len(x)),
    }
    for name, question in questions.items():
        found = [question(made_with(t, policy)[0]) for t in (taeda, torch)]
        assert found[0] == found[1], name
    x, asked = made_with(taeda, policy)
    assert tuple(x.shape) == ((7, 8) if policy == "sizes" else (2, 3))
    assert asked == (["aten.sym_size.default"] if policy == "sizes" else [])


def test_a_class_without_an_answer_raises_and_plain_instances_do_not_ask():
    x, _ = made_with(taeda, "sizes")
    with pytest.raises(
        TypeError, match=r"Multiple dispatch failed for 'torch.ops.aten.sym_storage"
    ):
        x.storage_offset()
    plain = taeda.Tensor._make_wrapper_subclass(type(x), (2, 3))
    assert tuple(plain.shape) == (2, 3) and plain.numel() == 6


@pytest.mark.parametrize(
    "options",
    [
        {"dispatch_sizes_strides_policy": "all"},
        {"dispatch_sizes_strides_policy": 3},
        {"strides": (1,)},
        {"storage_offset": 2},
        {"unknown": 1},
    ],
)
def test_wrappers_refuse_what_pytorchs_refuse(options):
    torch = pytest.importorskip("torch")
    found = []
    for t in (taeda, torch):
        kind = type(made_with(t, None)[0])
        with pytest.raises((RuntimeError, TypeError, ValueError)) as raised:
            t.Tensor._make_wrapper_subclass(kind, (2, 3), **options)
        found.append((raised.type, str(raised.value)))
    assert found[0] == found[1]


# --- classes that answer for their device and layout; storages of their own size ---


def answering(t, **options):
    """An instance on the CPU whose class says that it is on meta and sparse."""
    asked = []

    class Elsewhere(t.Tensor):
        @staticmethod
        def __new__(cls):
            return t.Tensor._make_wrapper_subclass(cls, (2, 3), **options)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(str(func))
            answers = {"device": t.device("meta"), "layout": t.sparse_coo, "is_contiguous": False}
            return answers.get(str(func).split(".")[1], NotImplemented)

    return Elsewhere(), asked


QUESTIONS = {
    "device": lambda x: str(x.device),
    "get_device": lambda x: x.get_device(),
    "is_cpu": lambda x: (x.is_cpu, x.is_cuda, x.is_meta),
    "layout": lambda x: str(x.layout),
    "is_sparse": lambda x: x.is_sparse,
    "shape": lambda x: (tuple(x.shape), x.stride(), x.numel()),
    "is_contiguous": lambda x: x.is_contiguous(),
    "channels_last": lambda x: x.is_contiguous(memory_format=x.last),
}
ANSWERS = {
    "nothing": {},
    "device": {"dispatch_device": True},
    "layout": {"dispatch_layout": True},
    "both": {"dispatch_device": True, "dispatch_layout": True},
    "strides": {"dispatch_sizes_strides_policy": "strides", "strides": (3, 1)},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_class_answers_for_its_device_and_layout(name):
    torch = pytest.importorskip("torch")
    for what, question in QUESTIONS.items():
        if what == ("shape" if name == "strides" else "channels_last"):
            continue
        found = []
        for t in (taeda, torch):
            x, asked = answering(t, **ANSWERS[name])
            x.last = t.channels_last
            found.append((question(x), asked if what != "is_cpu" else sorted({*asked})))
        assert found[0] == found[1], what


@pytest.mark.parametrize(
    "options", [{}, {"storage_size": 100}, {"storage_size": 0}, {"strided": 4}]
)
def test_a_wrapper_has_a_storage_of_the_size_that_it_says(options):
    torch = pytest.importorskip("torch")
    found = []
    for t in (taeda, torch):
        given = dict(options)
        if offset := given.pop("strided", 0):
            given |= {"strides": (10, 2), "storage_offset": offset, "dtype": t.float64}
        x, _ = answering(t, **given)
        found.append((x.untyped_storage().nbytes(), x.storage_offset(), x.data_ptr()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options",
    [
        {"storage_size": "a"},
        {"storage_size": 1.5},
        {"dispatch_device": "a"},
        {"dispatch_layout": 1},
    ],
)
def test_wrappers_refuse_arguments_of_another_type(options):
    torch = pytest.importorskip("torch")
    found = []
    for t in (taeda, torch):
        with pytest.raises(TypeError) as raised:
            answering(t, **options)
        found.append(str(raised.value))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"storage_size": -1}, RuntimeError), ({"_extra_dispatch_keys": 3}, NotImplementedError)],
)
def test_wrappers_refuse_what_they_cannot_be(options, kind):
    with pytest.raises(kind, match=r"_make_wrapper_subclass: .*(storage_size|_extra)"):
        answering(taeda, **options)


def test_a_tensor_becomes_one_of_a_class_unseen_by_modes():
    class Own(taeda.Tensor):
        pass

    x = taeda.ones(2)
    with Log() as log:
        y = x.as_subclass(Own)
        assert log.calls == []
        assert type(y) is Own and type(y + 1) is Own
        y += 1
    assert x.tolist() == [2, 2]
