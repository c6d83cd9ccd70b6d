# ruff: noqa: E501
"""autograd.Function, against PyTorch."""

import gc
import weakref

import pytest

import taeda


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def square(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gy):
            (x,) = ctx.saved_tensors
            return 2 * x * gy

    return Square


def test_gradient_and_second_derivative(both):
    def program(t):
        x = leaf(t, 3.0)
        y = square(t).apply(x)
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (gg,) = t.autograd.grad(g, x)
        return y, g, gg, y.grad_fn.name(), type(y.grad_fn).__name__

    both(program)


def test_context(both):
    def program(t):
        seen = {}

        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, a, k, b, c=None):
                ctx.k = k
                ctx.save_for_backward(a, b)
                seen["forward"] = ctx.needs_input_grad, t.is_grad_enabled()
                return a * k + b, "text", a.detach() * 0

            @staticmethod
            def backward(ctx, ga, gs, gb):
                seen["backward"] = ctx.needs_input_grad, ga, gs, gb, t.is_grad_enabled()
                return ga * ctx.k, None, None, None

        a, b = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
        y, text, z = F.apply(a, 3, b)
        y.sum().backward()
        return y, text, z.requires_grad, a.grad, seen

    both(program)


def test_setup_context_and_defaults(both):
    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(x, k=2):
                return x * k

            @staticmethod
            def setup_context(ctx, inputs, output):
                _, ctx.k = inputs

            @staticmethod
            def backward(ctx, gy):
                return gy * ctx.k, None

        x = leaf(t, 1.0)
        F.apply(x).backward()
        F.apply(x, 5).backward()
        return x.grad

    both(program)


def test_mark_dirty(both):
    def program(t):
        class Double(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, gy):
                return gy * 2

        x = leaf(t, 1.0, 2.0)
        h = x * 3
        y = Double.apply(h)
        same = y is h
        y.sum().backward()
        v = x * 1
        Double.apply(v[:1])
        (g,) = t.autograd.grad((v * v).sum(), x)
        return same, y, x.grad, g

    both(program)


def test_dirty_leaf_and_unreturned(both):
    def leaf_written(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, gy):
                return gy

        F.apply(leaf(t, 1.0))

    def not_returned(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x * 1

            @staticmethod
            def backward(ctx, gy):
                return gy

        F.apply(leaf(t, 1.0) * 1)

    both(leaf_written, part="leaf Variable that requires grad")
    both(
        not_returned,
        part="Some elements marked as dirty during the forward method were not returned as output",
    )


def test_non_differentiable_and_materialize(both):
    def program(t):
        seen = []

        class Sort(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, materialize):
                ctx.set_materialize_grads(materialize)
                a, b = x * 2, x * 3
                ctx.mark_non_differentiable(b)
                return a, b, x * 4

            @staticmethod
            def backward(ctx, ga, gb, gc):
                seen.append((ga, gb, gc))
                return ga if gc is None else ga + gc, None

        x = leaf(t, 1.0)
        flags = []
        for materialize in (True, False):
            a, b, c = Sort.apply(x, materialize)
            flags.append((a.requires_grad, b.requires_grad, c.requires_grad))
            a.backward()
        return flags, seen, x.grad

    both(program)


def test_input_returned_as_it_is(both):
    def program(t):
        class Same(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, gy):
                return gy * 10

        x = leaf(t, 1.0)
        y = Same.apply(x)
        same = y is x
        y.backward()
        return same, x.grad, y.requires_grad

    both(program)


@pytest.mark.parametrize("count", [1, 3])
def test_wrong_number_of_gradients(both, count):
    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, gy):
                return (gy,) * count

        F.apply(leaf(t, 1.0), leaf(t, 1.0)).backward()

    both(program, part=f"returned an incorrect number of gradients (expected 2, got {count})")


def test_gradient_for_a_number(both):
    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, k):
                return x * k

            @staticmethod
            def backward(ctx, gy):
                return gy, gy

        F.apply(leaf(t, 1.0), 2.0).backward()

    both(
        program,
        part="returned a gradient different than None at position 2, but the corresponding forward input was not a Variable",
    )


def test_once_differentiable(both):
    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @t.autograd.function.once_differentiable
            def backward(ctx, gy):
                (x,) = ctx.saved_tensors
                return 2 * x * gy

        x = leaf(t, 3.0)
        F.apply(x).backward()
        first = x.grad.clone()
        gy = leaf(t, 1.0)
        (g,) = t.autograd.grad(F.apply(x), x, gy, create_graph=True)
        try:
            g.sum().backward()
        except RuntimeError as error:
            return first, g.detach(), str(error)

    both(program)


def test_saved_tensor_modified_or_used_twice(both):
    def modified(t):
        h = leaf(t, 1.0) * 1
        y = square(t).apply(h)
        h.add_(1)
        y.backward()

    def twice(t):
        y = square(t).apply(leaf(t, 1.0))
        y.backward()
        y.backward()

    both(modified, part="modified by an inplace operation")
    both(twice, part="Trying to backward through the graph a second time")


def test_jvp(both):
    def program(t):
        fw = t.autograd.forward_ad

        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_forward(x)
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, gy):
                return 3 * ctx.saved_tensors[0] ** 2 * gy

            @staticmethod
            def jvp(ctx, tx):
                return 3 * ctx.saved_tensors[0] ** 2 * tx

        with fw.dual_level():
            x = fw.make_dual(t.tensor([2.0]), t.tensor([10.0]))
            return fw.unpack_dual(F.apply(x)).tangent

    both(program)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("forward_first", [False, True])
def test_jvp_sees_what_was_saved_for_it(both, recorded, forward_first):
    def program(t):
        fw = t.autograd.forward_ad

        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if forward_first:
                    ctx.save_for_forward(x, 3 * x**2)
                ctx.save_for_backward(x)
                if not forward_first:
                    ctx.save_for_forward(x, 3 * x**2)
                return x**3

            @staticmethod
            def backward(ctx, gy):
                (x,) = ctx.saved_tensors
                return 3 * x**2 * gy

            @staticmethod
            def jvp(ctx, tx):
                _, factor = ctx.saved_tensors
                return factor * tx

        with fw.dual_level():
            leaf = t.tensor([2.0], requires_grad=recorded)
            y = F.apply(fw.make_dual(leaf, t.tensor([10.0])))
            if recorded:
                y.sum().backward()
            return fw.unpack_dual(y).tangent.detach(), leaf.grad if recorded else y

    both(program)


def test_no_forward_or_backward(both):

    def no_backward(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

        F.apply(leaf(t, 1.0)).backward()

    def instance(t):
        square(t)()(leaf(t, 1.0))

    both(no_backward)
    both(instance)


def test_context_dies_with_the_graph():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)

    class F(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, m):
            ctx.m = m
            return x * 2

        @staticmethod
        def backward(ctx, gy):
            return gy * 2, None

    x = taeda.ones(1, requires_grad=True)
    y = F.apply(x, marker)
    del marker
    assert alive() is not None
    del y
    assert alive() is None

    # A result kept on its own context is a cycle that the collector finds.
    marker = Marker()
    alive = weakref.ref(marker)
    y = F.apply(x, marker)
    y.grad_fn.metadata["marker"] = y
    context_user = y.grad_fn.m
    del y, marker, context_user
    gc.collect()


def test_attributes_of_the_node():
    x = taeda.ones(2, requires_grad=True)
    y = square(taeda).apply(x)
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn.saved_tensors[0].tolist() == [1, 1]
    ((node, number),) = y.grad_fn.next_functions
    assert node.name() == "torch::autograd::AccumulateGrad" and node.variable is x and number == 0
    y.grad_fn.metadata["k"] = 5
    assert y.grad_fn.metadata == {"k": 5}


@pytest.mark.parametrize("setup", [False, True])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((0,), {"k": 2}), ((0, 5), {"k": 2}), ((), {"y": 3, "x": 0}), ((), {"k": 3, "x": 0, "y": 2}),
        ((0,), {"z": 1}), ((0,), {"x": 0}), ((), {"k": 1}), ((0, 1), {}),
    ],
)  # fmt: skip
def test_arguments_by_name(both, setup, args, kwargs):
    def program(t):
        class Joined(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, y=2, k=3):
                return x * y * k

            @staticmethod
            def backward(ctx, gy):
                return (gy,) + (None,) * (len(ctx.needs_input_grad) - 1)

        class Apart(Joined):
            @staticmethod
            def forward(x, y=2, k=3):
                return x * y * k

            @staticmethod
            def setup_context(ctx, inputs, output):
                assert len(inputs) == 3

        x = leaf(t, 1.0, 2.0)
        given = [x if a == 0 else a for a in args]
        named = {name: x if name == "x" else value for name, value in kwargs.items()}
        y = (Apart if setup else Joined).apply(*given, **named)
        y.sum().backward()
        return y, x.grad

    both(program)


@pytest.mark.parametrize("grads", [lambda g: (g, g), lambda g: (g, None), lambda g: "no"])
def test_wrong_gradients(both, grads):
    def program(t):
        class F(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gy):
                return grads(gy)

        x = leaf(t, 1.0)
        F.apply(x).backward()
        return x.grad

    both(program)


def test_nodes_print_like_pytorch():
    class Double(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gy):
            return gy * 2

    x = taeda.ones(2, requires_grad=True)
    assert repr((x * 2).grad_fn).startswith("<MulBackward0 object at 0x")
    assert str(type(x.sum().grad_fn)) == "<class 'SumBackward0'>"
    assert repr(Double.apply(x).grad_fn).startswith(
        "<taeda.autograd.function.DoubleBackward object"
    )


def test_a_constant_of_a_wrapper_class_is_saved_itself(both):
    def program(t):
        class Named(t.Tensor):
            @staticmethod
            def __new__(cls, data, name):
                return t.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

            def __init__(self, data, name):
                self.data_, self.name_ = data, name

            @classmethod
            def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
                raise NotImplementedError(f"{f} is not for {cls.__name__}")

        class Times(t.autograd.Function):
            @staticmethod
            def forward(ctx, constant, x):
                ctx.save_for_backward(constant)
                return x * constant.data_

            @staticmethod
            def backward(ctx, gy):
                (constant,) = ctx.saved_tensors
                seen.append((type(constant).__name__, constant.name_))
                return None, gy * constant.data_

        seen = []
        x = leaf(t, 1.0, 2.0)
        y = Times.apply(Named(t.tensor([3.0, 4.0], dtype=t.float64), "scale"), x)
        gc.collect()
        y.sum().backward()
        return x.grad, seen

    both(program)


def test_saved_variables_is_the_old_name_of_saved_tensors():
    torch = pytest.importorskip("torch")

    def gradient(t):
        class Square(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gy):
                with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
                    (x,) = ctx.saved_variables
                return 2 * x * gy

        x = leaf(t, 1.0, -2.0)
        Square.apply(x).sum().backward()
        return x.grad.tolist()

    assert gradient(taeda) == gradient(torch) == [2.0, -4.0]
