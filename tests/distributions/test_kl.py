"""Divergences: every pair that PyTorch has, by its numbers and by sampling."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest
from tests.distributions.oracle import FRAMEWORKS, Names, assert_same, outcome, torch

import taeda
from taeda import distributions
from taeda.distributions.kl import _KL_REGISTRY

# Two of each family: the second is p where the types agree.
FAMILIES = {
    "Bernoulli": ("p(0.0, 0.3, 0.9)", "p(0.2, 0.6, 1.0)"),
    "Beta": ("p(0.5, 2.0), p(1.5, 3.0)", "p(1.5, 2.5), p(0.7, 4.0)"),
    "Binomial": ("t(3, 3), p(0.2, 0.6)", "t(3, 5), p(0.3, 0.5)"),
    "Categorical": ("p([0.2, 0.8], [0.0, 1.0])", "p([0.5, 0.5], [1.0, 3.0])"),
    "Cauchy": ("p(0.0, 1.0), p(1.0, 2.0)", "p(1.0, 1.5), p(3.0, 0.5)"),
    "ContinuousBernoulli": ("p(0.2, 0.9)", "p(0.5, 0.6)"),
    "Dirichlet": ("p([0.5, 2.0], [3.0, 1.0])", "p([1.5, 0.7], [1.0, 1.0])"),
    "Exponential": ("p(0.5, 2.0)", "p(1.5, 0.7)"),
    "Gamma": ("p(0.5, 2.0), p(1.0, 3.0)", "p(1.5, 0.7), p(2.0, 0.5)"),
    "Geometric": ("p(0.2, 0.9)", "p(0.5, 0.6)"),
    "Gumbel": ("p(0.0, 1.0), p(1.0, 2.0)", "p(1.0, 1.5), p(3.0, 0.5)"),
    "HalfNormal": ("p(0.5, 2.0)", "p(1.5, 0.7)"),
    "Independent": ("D.Normal(r(2, 3), 1.0), 1", "D.Normal(r(2, 3) + 1, 2.0), 1"),
    "Laplace": ("p(0.0, 1.0), p(1.0, 2.0)", "p(1.0, 1.5), p(3.0, 0.5)"),
    "LowRankMultivariateNormal": (
        "r(2, 3), r(3, 1), t(1.0, 2.0, 3.0)",
        "r(3), r(2, 3, 2), t(2.0, 1.0, 0.5)",
    ),
    "MultivariateNormal": ("r(2, 3), T.eye(3)", "r(3), T.eye(3) + T.ones(2, 3, 3)"),
    "Normal": ("p(0.0, 1.0), p(1.0, 2.0)", "p(1.0, 1.5), p(3.0, 0.5)"),
    "OneHotCategorical": ("p([0.2, 0.8], [0.0, 1.0])", "p([0.5, 0.5], [1.0, 3.0])"),
    "Pareto": ("p(0.5, 2.0), p(2.5, 3.0)", "p(0.7, 1.0), p(2.1, 1.5)"),
    "Poisson": ("p(0.5, 2.0)", "p(1.5, 0.7)"),
    "TransformedDistribution": (
        "D.Normal(p(0.0, 1.0), 1.0), D.ExpTransform()",
        "D.Normal(p(1.0, 1.5), 2.0), D.ExpTransform()",
    ),
    "Uniform": ("p(0.0, 2.0), p(1.0, 2.5)", "p(0.2, 1.0), p(0.9, 3.0)"),
}
PAIRS = sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)


def test_the_pairs_are_pytorchs() -> None:
    from torch.distributions.kl import _KL_REGISTRY as registry

    assert PAIRS == sorted((p.__name__, q.__name__) for p, q in registry)


def divergence(names: Names, p: str, q: str, order: int) -> Any:
    first = names.evaluate(f"D.{p}({FAMILIES[p][order]})")
    kl = names.D.kl_divergence(first, names.evaluate(f"D.{q}({FAMILIES[q][1 - order]})"))
    finite = names.T.where(names.T.isfinite(kl), kl, 0.0).sum()
    if not names.parameters or not finite.requires_grad:
        return kl, None
    grads = names.T.autograd.grad(finite, names.parameters, allow_unused=True)
    return kl, [names.t(0.0) if g is None else g.nan_to_num(0.0) for g in grads]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("p", "q"), [pair for pair in PAIRS if "ExponentialFamily" not in pair])
def test_divergences(p: str, q: str, order: int) -> None:
    a, b = (outcome(partial(divergence, Names(f), p, q, order)) for f in FRAMEWORKS)
    assert_same(a[0], b[0], "divergence", rtol=2e-5, atol=1e-5)
    if b[1] is not None and "Infinite" not in str(b):
        assert_same(a[1], b[1], "gradient", rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["Bernoulli", "Beta", "Dirichlet", "Exponential", "Gamma"])
def test_bregman_divergences(name: str) -> None:
    """The general formula for exponential families gives what the special one gives."""
    D = distributions
    names = Names(taeda)
    p, q = (names.evaluate(f"D.{name}({FAMILIES[name][i].replace('0.0', '0.1')})") for i in (0, 1))
    if name == "Bernoulli":
        q = D.Bernoulli(taeda.tensor([0.2, 0.6, 0.7]))
    general = _KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily](p, q)
    assert taeda.allclose(general, D.kl_divergence(p, q), rtol=1e-4, atol=1e-5)
    if name not in ("Beta", "Dirichlet"):  # without the mean of their carrier measure
        entropy = D.ExponentialFamily.entropy(p)
        assert taeda.allclose(entropy, p.entropy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ("Beta(2.0, 3.0)", "Gamma(2.0, 1.5)"),
        ("Gamma(2.0, 3.0)", "Normal(0.5, 2.0)"),
        ("Gumbel(0.0, 1.0)", "Normal(0.5, 2.0)"),
        ("Normal(0.3, 0.7)", "Laplace(0.5, 2.0)"),
        ("Uniform(0.2, 0.7)", "Beta(0.5, 2.0)"),
        ("Pareto(1.0, 5.0)", "Exponential(0.5)"),
        ("Cauchy(0.0, 1.0)", "Cauchy(0.5, 2.0)"),
    ],
)
def test_divergences_by_sampling(p: str, q: str) -> None:
    names = Names(taeda)
    first, second = names.evaluate("D." + p), names.evaluate("D." + q)
    taeda.manual_seed(0)
    x = first.sample((200_000,))
    terms = first.log_prob(x) - second.log_prob(x)
    error = (terms.mean() - distributions.kl_divergence(first, second)).abs()
    assert error < 5 * terms.std() / 200_000**0.5


def test_registering() -> None:
    class Mine(distributions.Normal):
        pass

    @distributions.register_kl(Mine, Mine)
    def _kl(p: Any, q: Any) -> str:
        return "mine"

    try:
        mine, normal = Mine(0.0, 1.0), distributions.Normal(0.0, 1.0)
        assert distributions.kl_divergence(mine, mine) == "mine"
        assert distributions.kl_divergence(mine, normal) == 0
        with pytest.raises(NotImplementedError, match=r"No KL.* p type StudentT and q type Normal"):
            distributions.kl_divergence(distributions.StudentT(1.0), normal)
        with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
            distributions.register_kl(3, Mine)  # type: ignore[arg-type]
    finally:
        del _KL_REGISTRY[Mine, Mine]


def test_ambiguous_pairs_warn() -> None:
    class A(distributions.Normal):
        pass

    for one, other in ((A, distributions.Normal), (distributions.Normal, A)):
        distributions.register_kl(one, other)(lambda p, q, pair=(one, other): pair)
    try:
        with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="Ambiguous"):
            warnings.simplefilter("error")
            distributions.kl_divergence(A(0.0, 1.0), A(0.0, 1.0))
    finally:
        del _KL_REGISTRY[A, distributions.Normal], _KL_REGISTRY[distributions.Normal, A]


assert torch
