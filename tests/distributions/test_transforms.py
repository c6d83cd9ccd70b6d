"""Transforms, constraints and their registry are PyTorch's."""

from __future__ import annotations

import pickle
from functools import partial

import pytest
from tests.distributions.oracle import FRAMEWORKS, Names, assert_same, outcome

from taeda import distributions

TRANSFORMS = {
    "D.AbsTransform()": "r(3)",
    "D.AffineTransform(1.0, -2.0)": "r(3)",
    "D.AffineTransform(t(1.0, 2.0, 3.0), t(1.0, -2.0, 0.5))": "r(4, 3)",
    "D.AffineTransform(0.0, t(1.0, -2.0, 0.5), event_dim=1)": "r(4, 3)",
    "D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], 0, [2, 1])": "r(3)",
    "D.CatTransform([D.ExpTransform(), D.StickBreakingTransform()], -2)": "r(2, 3)",
    "D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1, 2)])": "r(2, 3)",
    "D.ComposeTransform([D.StickBreakingTransform(), D.AffineTransform(1, 2)])": "r(2, 3)",
    "D.CorrCholeskyTransform()": "r(2, 6)",
    "D.transforms.CumulativeDistributionTransform(D.Normal(0.5, 2.0))": "r(3)",
    "D.ExpTransform()": "r(3)",
    "D.ExpTransform().inv": "r(3).exp()",
    "D.IndependentTransform(D.ExpTransform(), 1)": "r(2, 3)",
    "D.LowerCholeskyTransform()": "r(2, 3, 3)",
    "D.PositiveDefiniteTransform()": "r(2, 3, 3)",
    "D.PowerTransform(t(2.0, -1.0, 0.5))": "r(2, 3).exp()",
    "D.ReshapeTransform((2, 3), (6,))": "r(4, 2, 3)",
    "D.SigmoidTransform()": "r(3) * 20",
    "D.SoftmaxTransform()": "r(2, 3)",
    "D.SoftplusTransform()": "r(3) * 20",
    "D.StackTransform([D.ExpTransform(), D.TanhTransform()], 1)": "r(3, 2)",
    "D.StickBreakingTransform()": "r(2, 3)",
    "D.TanhTransform()": "r(3)",
    "D.identity_transform": "r(3)",
}
ASKED = {
    "value": "f(x)",
    "inverse": "f.inv(f(x))",
    "log_det": "f.log_abs_det_jacobian(x, f(x))",
    "inverse log_det": "f.inv.log_abs_det_jacobian(f(x), x)",
    "gradient": "T.autograd.grad(f(x).pow(2).sum(), x)",
    "forward_shape": "f.forward_shape(x.shape)",
    "inverse_shape": "f.inverse_shape(f(x).shape)",
    "too few": "f.forward_shape(())",
    "repr": "repr(f)",
    "repr of inverse": "repr(f.inv)",
    "domain": "repr(f.domain), f.domain.event_dim, f.domain.is_discrete",
    "codomain": "repr(f.codomain), f.codomain.event_dim",
    "sign": "f.sign",
    "bijective": "f.bijective",
    "event_dim": "f.event_dim",
    "equal": "f == f, f.inv.inv is f, f == D.ExpTransform(), f != f",
    "cached": "f.with_cache(1).inv(f(x)), f.with_cache(0)._cache_size",
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms(transform: str) -> None:
    both = [Names(f) for f in FRAMEWORKS]
    given = [{"f": n.evaluate(transform), "x": n.evaluate(TRANSFORMS[transform])} for n in both]
    for what, expression in ASKED.items():
        a, b = (outcome(partial(n.evaluate, expression, **g)) for n, g in zip(both, given))
        if what == "domain" and isinstance(b, tuple) and "Cumulative" in transform:
            b = (*b[:1], *b[1:])
        assert_same(a, b, what, rtol=1e-4, atol=1e-5)


def test_cache_inverts_exactly() -> None:
    import taeda

    f = distributions.TanhTransform(cache_size=1)
    x = taeda.tensor([20.0])
    assert f.inv(f(x)) is x
    assert pickle.loads(pickle.dumps(f)).inv(taeda.zeros(1)) == 0
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        distributions.TanhTransform(cache_size=2)


C = "D.constraints."
CHECKS = [
    (f"{C}boolean", "t(0.0, 1.0, 0.5)"),
    (f"{C}one_hot", "t([[0.0, 1.0], [1.0, 1.0], [0.0, 0.5]])"),
    (f"{C}cat([{C}positive, {C}real], 0)", "t(0.0, 1.0)"),
    (f"{C}stack([{C}positive, {C}real], -1)", "t([0.0, 1.0], [2.0, -1.0])"),
    (f"{C}corr_cholesky", "t([[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]])"),
    (f"{C}greater_than(t(0.0, 1.0))", "t(0.5, 1.0)"),
    (f"{C}greater_than_eq(1)", "t(0.5, 1.0)"),
    (f"{C}less_than(1)", "t(0.5, 1.0)"),
    (f"{C}half_open_interval(0, 1)", "t(0.0, 1.0, float('nan'))"),
    (f"{C}interval(0, 1)", "t(0.0, 1.0, 2.0)"),
    (f"{C}unit_interval", "t(0.0, 1.0, 2.0)"),
    (f"{C}integer_interval(0, 3)", "t(0.0, 3.0, 4.0, 1.5)"),
    (f"{C}nonnegative_integer", "t(0.0, -1.0, 4.0, 1.5)"),
    (f"{C}positive_integer", "t(0.0, 1.0)"),
    (f"{C}independent({C}positive, 1)", "t([0.0, 1.0], [2.0, 1.0])"),
    (f"{C}independent({C}positive, 2)", "t(0.0, 1.0)"),
    (f"{C}lower_cholesky", "t([[[1.0, 0.0], [0.6, -0.8]], [[1.0, 0.0], [0.6, 0.7]]])"),
    (f"{C}lower_triangular", "t([[[1.0, 0.0], [0.6, -0.8]], [[1.0, 0.1], [0.6, 0.7]]])"),
    (f"{C}multinomial(3)", "t([1.0, 2.0], [2.0, 2.0], [-1.0, 0.0])"),
    (f"{C}positive", "t(0.0, 1.0)"),
    (f"{C}nonnegative", "t(-1.0, 0.0, 1.0)"),
    (f"{C}positive_definite", "t([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]])"),
    (f"{C}positive_semidefinite", "t([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]])"),
    (f"{C}positive_definite", "t([1.0, 2.0], [3.0, 4.0])"),
    (f"{C}real", "t(0.0, float('nan'), float('inf'))"),
    (f"{C}real_vector", "t([0.0, float('nan')], [1.0, 2.0])"),
    (f"{C}simplex", "t([0.5, 0.5], [0.5, 0.6], [-0.5, 1.5])"),
    (f"{C}square", "T.zeros(2, 3, 4)"),
    (f"{C}symmetric", "t([[1.0, 2.0], [2.0, 1.0]])"),
    (f"{C}dependent", "t(0.0)"),
    (f"{C}dependent(is_discrete=True, event_dim=1)", "t(0.0)"),
    (f"{C}MixtureSameFamilyConstraint({C}real_vector)", "t([0.0, float('nan')], [1.0, 2.0])"),
]
OF_CONSTRAINT = {
    "check": "c.check(x)",
    "repr": "repr(c)",
    "event_dim": "c.event_dim",
    "is_discrete": "c.is_discrete",
    "dependent": "D.constraints.is_dependent(c)",
    "biject_to": "repr(D.biject_to(c))",
    "transform_to": "repr(D.transform_to(c))",
}


@pytest.mark.parametrize(("constraint", "value"), CHECKS)
def test_constraints(constraint: str, value: str) -> None:
    both = [Names(f) for f in FRAMEWORKS]
    given = [{"c": n.evaluate(constraint), "x": n.evaluate(value)} for n in both]
    for what, expression in OF_CONSTRAINT.items():
        a, b = (outcome(partial(n.evaluate, expression, **g)) for n, g in zip(both, given))
        assert_same(a, b, what)


@pytest.mark.parametrize(
    "expression",
    [
        "D.biject_to.register(3, lambda c: c)",
        "D.constraints.independent(3, 1)",
        "D.constraints.independent(D.constraints.real, 1.0)",
        "D.constraints.independent(D.constraints.real, -1)",
        "D.constraints.cat([1])",
        "D.constraints.cat([D.constraints.real], lengths=[1, 2])",
        "D.CatTransform([D.ExpTransform()])(T.zeros(2))",
        "D.CatTransform([D.ExpTransform()], 1)(T.zeros(1))",
        "D.CatTransform([1])",
        "D.CatTransform([D.ExpTransform()], 0, [1, 2])",
        "D.StackTransform([D.ExpTransform()])(T.zeros(2))",
        "D.ReshapeTransform((2,), (3,))",
        "D.ReshapeTransform((2,), (2, 1)).forward_shape((3,))",
        "D.CorrCholeskyTransform()(T.zeros(2))",
        "D.CorrCholeskyTransform().forward_shape((4,))",
        "D.IndependentTransform(D.ExpTransform(), 1)(t(0.0))",
        "D.utils.vec_to_tril_matrix(T.zeros(4))",
        "D.utils.tril_matrix_to_vec(T.zeros(2, 2), 2)",
        "D.utils.broadcast_all('a')",
    ],
)
def test_errors(expression: str) -> None:
    a, b = (outcome(partial(Names(f).evaluate, expression)) for f in FRAMEWORKS)
    assert isinstance(b[0], type), "PyTorch raises here"
    assert a == b


@pytest.mark.parametrize(
    "expression",
    [
        "D.utils.vec_to_tril_matrix(T.arange(6.0))",
        "D.utils.vec_to_tril_matrix(T.arange(6.0).view(2, 3), -1)",
        "D.utils.vec_to_tril_matrix(T.arange(8.0), 1)",
        "D.utils.tril_matrix_to_vec(T.arange(9.0).view(3, 3), -1)",
        "D.utils.tril_matrix_to_vec(T.arange(9.0).view(3, 3), 1)",
        "D.utils.broadcast_all(1, t(2.0, 3.0), True)",
        "D.utils.broadcast_all(1, 2)",
        "D.utils.probs_to_logits(t(0.0, 0.5, 1.0), is_binary=True)",
        "D.utils.logits_to_probs(t(0.0, 0.5, 1.0))",
        "D.utils.clamp_probs(T.tensor([0.0, 1.0], dtype=T.float64))",
    ],
)
def test_utils(expression: str) -> None:
    a, b = (outcome(partial(Names(f).evaluate, expression)) for f in FRAMEWORKS)
    assert_same(a, b, expression)
