"""What torch.autograd.functional refuses, in strict mode and of vectors, against PyTorch."""

from __future__ import annotations

import pytest

import taeda

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "detached": lambda t: lambda a: a.detach(),
    "another leaf": lambda t: lambda a: a.long().double().requires_grad_().clone(),
    "linear": lambda t: lambda a: 3 * a,
    "square": lambda t: lambda a: a * a,
}
OF_VECTORS = ("vjp", "jvp", "vhp", "hvp")


def outcome(t, name, function, strict, create_graph):
    made = FUNCTIONS[function](t)
    inputs = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    v = t.tensor([1.0, -1.0], dtype=t.float64)
    of_scalar = name in ("vhp", "hvp", "hessian")
    arguments = (lambda a: made(a).sum()) if of_scalar else made, inputs
    arguments += (v,) if name in OF_VECTORS else ()
    try:
        found = getattr(t.autograd.functional, name)(
            *arguments, create_graph=create_graph, strict=strict
        )
    except RuntimeError as error:
        return str(error).split(". ")[0]
    return [x.tolist() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", [*OF_VECTORS, "jacobian", "hessian"])
def test_strict_mode_raises_where_pytorchs_does(name, function, strict, create_graph):
    mine, theirs = (outcome(t, name, function, strict, create_graph) for t in (taeda, torch))
    assert mine == theirs


@pytest.mark.parametrize("name", OF_VECTORS)
def test_wrong_vectors_and_inputs_are_named(name):
    def outcomes(t):
        x, found = t.ones(4), []
        for inputs, v in ((x, (x, x)), (x, x[:2]), ((x, 2), x), (x, (x, 2)), (x, None)):
            function = (lambda a: a.exp().sum()) if name in ("vhp", "hvp") else lambda a: a.exp()
            try:
                getattr(t.autograd.functional, name)(function, inputs, v)
            except (RuntimeError, TypeError) as error:
                found.append((type(error).__name__, str(error)[:50]))
        return found

    assert outcomes(taeda) == outcomes(torch)
