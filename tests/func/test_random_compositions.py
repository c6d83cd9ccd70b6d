"""A sample of transforms of transforms over programs that write, view, index and branch.

Every transform here keeps the sum over the results, so that a chain of them is a derivative of a
known order, which PyTorch's ordinary autograd computes in loops.
"""

import functools
import itertools
import random

import numpy as np
import pytest
from tests.func.test_compositions import cube_function

import taeda
import taeda.utils.checkpoint

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")

# --- programs: functions of a vector of three positive numbers, element by element ---


def writes_a_view_after_its_base(t, x):
    y = x * 2
    view = y[:2]
    y.mul_(x)
    view.mul_(x[:2])
    y[2:].pow_(3)
    return y


def writes_what_it_read(t, x):
    y = x.clone()
    y.square_()
    y.view(3, 1).mul_(x.sin().view(3, 1))
    y.exp_()
    return y


def fills_a_fresh_tensor(t, x):
    y = t.zeros_like(x)
    for i in range(3):
        y[i] = x[i] ** 3 + x[i]
    return y


def writes_parts_of_complex_numbers(t, x):
    z = t.complex(x, x * x)
    z.real.mul_(x)
    z.imag.add_(x.sin())
    t.view_as_real(z)[:, 0].mul_(x)
    return (z * z.conj()).real


def pairs_as_complex(t, x):
    y = t.stack([x, x * x], 1)
    t.view_as_complex(y).mul_(1j)
    return y[:, 0] * y[:, 1]


def writes_through_a_conjugate(t, x):
    z = t.complex(x, x.exp())
    w = z.conj()
    w.imag.mul_(x)
    return z.imag + w.real


def indexes(t, x):
    order = t.tensor([2, 0, 1])
    y = t.zeros_like(x)
    y[order] = x[order] ** 3
    y[order[:1]] += x[order[:1]].exp()
    return y.index_add(0, order, (x * x * y)[order])


def masks(t, x):
    y = t.where(x > 1, x**3, x.exp())
    y = y.masked_fill(x > 100, 0.0)
    return y.clamp(max=50) * x


def without_recording(t, x):
    with t.no_grad():
        fixed = t.ones_like(x) * 2
        fixed.mul_(2)
    return x**3 * fixed


def checkpointed(t, x):
    inner = lambda y: (y * y).sin() * y  # noqa: E731
    return t.utils.checkpoint.checkpoint(inner, x * 2, use_reentrant=False)


def splits(t, x):
    a, b, c = x.unbind()
    first, rest = (x * x).split([1, 2])
    return t.stack([a**3, b.exp(), c * c]) + t.cat([first.sin(), rest * x[1:]])


def transposes_in_place(t, x):
    y = (x * x).view(1, 3).clone().t_().squeeze_()
    return y.mul_(x * x)


def steps_through_memory(t, x):
    y = t.empty_like(x, memory_format=t.contiguous_format).copy_(x * x)
    y.as_strided((2,), (2,)).mul_(x[::2])
    return y * x


@functools.cache
def cubes(t):
    """With a generated rule for vmap, and with one of its own."""
    cube = cube_function(t)

    class CubeByRule(cube):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x):
            return CubeByRule.apply(x), in_dims[0]

    return cube, CubeByRule


def a_function(t, x):
    return cubes(t)[0].apply(x * x) * x


def a_function_with_a_rule(t, x):
    return cubes(t)[1].apply(x.sin()) * x


PROGRAMS = [
    writes_a_view_after_its_base, writes_what_it_read, fills_a_fresh_tensor,
    writes_parts_of_complex_numbers, pairs_as_complex, writes_through_a_conjugate, indexes, masks,
    without_recording, checkpointed, splits, transposes_in_place, steps_through_memory,
    a_function, a_function_with_a_rule,
]  # fmt: skip

# --- transforms: the order of the derivative, and what they make of a function ---

ones = taeda.ones_like
func = taeda.func
TRANSFORMS = {
    "grad": (1, lambda f: func.grad(lambda x: f(x).sum())),
    "vjp": (1, lambda f: lambda x: func.vjp(f, x)[1](ones(x))[0]),
    "jvp": (1, lambda f: lambda x: func.jvp(f, (x,), (ones(x),))[1]),
    "jacrev": (1, lambda f: lambda x: func.jacrev(f)(x).sum(0)),
    "jacfwd": (1, lambda f: lambda x: func.jacfwd(f)(x).sum(0)),
    "hessian": (2, lambda f: lambda x: func.hessian(lambda y: f(y).sum())(x).sum(0)),
    "linearize": (1, lambda f: lambda x: func.linearize(f, x)[1](ones(x))),
    "vmap": (0, lambda f: lambda x: func.vmap(f)(taeda.stack([x, x * 0.5]))[0]),
    "vmap of columns": (
        0, lambda f: lambda x: func.vmap(f, 1, 1)(taeda.stack([x * 0.5, x], 1))[:, 1],
    ),
    "functionalize": (0, lambda f: func.functionalize(f)),
    "copies": (0, lambda f: func.functionalize(f, remove="mutations_and_views")),
}  # fmt: skip
X = [0.7, 1.3, 0.4]


@functools.cache
def derivative(program, order):
    """By PyTorch's ordinary autograd."""
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    y = program(torch, x) if program is not checkpointed else (4 * x * x).sin() * 2 * x
    for _ in range(order):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach().numpy()


def chains(depth):
    """Programs with names of transforms, the outermost first, that come to order 1 to 4."""
    for program, names in itertools.product(PROGRAMS, itertools.product(TRANSFORMS, repeat=depth)):
        order = sum(TRANSFORMS[name][0] for name in names)
        if 1 <= order <= 4:
            yield program, names, order


def run(program, names):
    f = lambda x: program(taeda, x)  # noqa: E731
    for name in reversed(names):
        f = TRANSFORMS[name][1](f)
    return f(taeda.tensor(X, dtype=taeda.float64))


SAMPLE = random.Random(15).sample([*chains(1), *chains(2)], 250)
SAMPLE += random.Random(16).sample([*chains(3)], 350)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_chains_of_transforms_are_derivatives(program):
    mine = [chain[1:] for chain in SAMPLE if chain[0] is program]
    assert len(mine) > 15
    for names, order in mine:
        found = run(program, names)
        where = " of ".join(names)
        assert not found.requires_grad, where
        np.testing.assert_allclose(
            found.numpy(), derivative(program, order), rtol=1e-7, atol=1e-9, err_msg=where
        )
