"""Every distribution has PyTorch's samples, densities, moments, gradients and error texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.distributions.oracle import FRAMEWORKS, Names, assert_same, outcome

CASES = [
    "D.Bernoulli(p(0.1, 0.5, 0.9))",
    "D.Bernoulli(logits=p([[-1.0, 2.0], [0.0, 30.0]]))",
    "D.Bernoulli(0.3)",
    "D.Beta(p(0.5, 2.0, 30.0), p(1.5, 0.2, 20.0))",
    "D.Beta(2.0, 3)",
    "D.Beta(p([[0.9], [3.0]]), 1.0)",
    "D.Binomial(10, p(0.1, 0.5, 0.9))",
    "D.Binomial(t(3, 40, 100), p(0.3, 0.5, 1.0))",
    "D.Binomial(t([[5], [7]]), logits=p(-1.0, 0.5))",
    "D.Categorical(p(0.1, 0.2, 0.7))",
    "D.Categorical(p([[1.0, 0.0, 3.0], [2.0, 2.0, 4.0]]))",
    "D.Categorical(logits=r(2, 3, 4))",
    "D.Cauchy(p(0.0, 1.0), p(1.0, 3.0))",
    "D.Cauchy(1, 2.5)",
    "D.Chi2(p(0.5, 3.0, 80.0))",
    "D.ContinuousBernoulli(p(0.1, 0.4995, 0.5, 0.9))",
    "D.ContinuousBernoulli(logits=p(-2.0, 0.001, 3.0))",
    "D.Dirichlet(p(0.5, 2.0, 9.0))",
    "D.Dirichlet(p([[0.1, 0.2, 0.3], [8.0, 20.0, 7.0]]))",
    "D.Exponential(p(0.2, 3.0))",
    "D.Exponential(2.0)",
    "D.FisherSnedecor(p(1.0, 5.0, 9.0), p(1.5, 3.0, 7.0))",
    "D.FisherSnedecor(3, 5.5)",
    "D.Gamma(p(0.2, 3.0, 80.0), p(1.0, 2.0, 0.5))",
    "D.Gamma(p([[0.9], [12.0]]), t(1.0, 2.0))",
    "D.Gamma(2.0, 1.5)",
    "D.GeneralizedPareto(p(0.0, 1.0, -1.0), p(1.0, 2.0, 0.5), p(0.3, 0.0, -0.7))",
    "D.GeneralizedPareto(0.0, 1.0, 2.0)",
    "D.Geometric(p(0.2, 0.7, 1.0))",
    "D.Geometric(logits=p(-1.0, 2.0))",
    "D.Geometric(0.3)",
    "D.Gumbel(p(0.0, 1.0), p(1.0, 3.0))",
    "D.Gumbel(0.5, 2.0)",
    "D.HalfCauchy(p(1.0, 3.0))",
    "D.HalfNormal(p([1.0, 3.0], [2.0, 0.1]))",
    "D.HalfNormal(2.0)",
    "D.Independent(D.Normal(r(2, 3), t(1.0, 2.0, 3.0)), 1)",
    "D.Independent(D.Bernoulli(p(0.2, 0.3)), 0)",
    "D.Independent(D.Dirichlet(p([[0.1, 0.2, 0.3], [8.0, 20.0, 7.0]])), 1)",
    "D.InverseGamma(p(0.7, 1.5, 4.0), p(1.0, 2.0, 0.5))",
    "D.Kumaraswamy(p(0.5, 2.0, 3.0), p(2.0, 1.0, 4.0))",
    "D.Kumaraswamy(2.0, 3.0)",
    "D.LKJCholesky(3, p(0.5, 1.0, 4.0))",
    "D.LKJCholesky(2, 1.5)",
    "D.Laplace(p(0.0, 1.0), p(1.0, 3.0))",
    "D.LogNormal(p(0.0, 1.0), p(1.0, 0.3))",
    "D.LogNormal(0.5, 1.0)",
    "D.LogisticNormal(r(3), t(1.0, 2.0, 0.5))",
    "D.LogisticNormal(r(2, 3), t(1.0, 2.0, 0.5))",
    "D.LogisticNormal(0.0, 1.0)",
    "D.LowRankMultivariateNormal(r(3), r(3, 2), t(1.0, 2.0, 0.5))",
    "D.LowRankMultivariateNormal(r(4, 1, 3), r(2, 3, 1), t(1.0, 2.0, 0.5))",
    "D.MixtureSameFamily(D.Categorical(p(0.1, 0.9)), D.Normal(r(2), t(1.0, 2.0)))",
    "D.MixtureSameFamily(D.Categorical(T.ones(3, 2)), D.Independent(D.Normal(r(3, 2, 4), 1.0), 1))",
    "D.MixtureSameFamily(D.Categorical(T.ones(2, 2)), D.Poisson(p([[1.0, 2.0], [3.0, 30.0]])))",
    "D.Multinomial(5, p(0.1, 0.2, 0.7))",
    "D.Multinomial(3, logits=r(2, 4))",
    "D.MultivariateNormal(r(3), covariance_matrix=T.eye(3) + 0.5 * T.ones(3, 3))",
    "D.MultivariateNormal(r(2, 3), precision_matrix=T.eye(3) + 0.5 * T.ones(3, 3))",
    "D.MultivariateNormal(r(3), scale_tril=(r(2, 3, 3) * 0.1).tril() + T.eye(3))",
    "D.MultivariateNormal(r(4, 1, 3), scale_tril=(r(1, 2, 3, 3) * 0.1).tril() + T.eye(3))",
    "D.NegativeBinomial(t(2.0, 5.5), p(0.3, 0.8))",
    "D.NegativeBinomial(3, logits=p(-1.0, 0.5))",
    "D.Normal(p(0.0, 1.0), p(1.0, 3.0))",
    "D.Normal(p([[0.0], [1.0]]), p(1.0, 3.0))",
    "D.Normal(0, 2)",
    "D.Normal(T.zeros(2, dtype=T.float64), 1.0)",
    "D.OneHotCategorical(p(0.1, 0.2, 0.7))",
    "D.OneHotCategorical(logits=r(2, 3))",
    "D.OneHotCategoricalStraightThrough(p([[0.1, 0.2, 0.7], [1.0, 1.0, 1.0]]))",
    "D.Pareto(p(1.0, 2.0, 3.0), p(0.5, 1.5, 4.0))",
    "D.Pareto(1.0, 2.5)",
    "D.Poisson(p(0.0, 0.5, 4.0, 40.0))",
    "D.Poisson(3.0)",
    "D.RelaxedBernoulli(p(0.7), p(0.1, 0.5, 0.9))",
    "D.RelaxedBernoulli(t(2.0), logits=p(-1.0, 3.0))",
    "D.RelaxedOneHotCategorical(t(0.7), p(0.1, 0.2, 0.7))",
    "D.RelaxedOneHotCategorical(p(2.0), logits=r(2, 3))",
    "D.relaxed_bernoulli.LogitRelaxedBernoulli(p(0.7), p(0.1, 0.5))",
    "D.relaxed_categorical.ExpRelaxedCategorical(p(0.7), p(0.1, 0.9))",
    "D.StudentT(p(0.5, 1.5, 3.0), p(0.0, 1.0, 2.0), p(1.0, 2.0, 0.5))",
    "D.StudentT(4.0)",
    "D.TransformedDistribution(D.Normal(r(3), 1.0), [D.ExpTransform(), D.AffineTransform(1, 2)])",
    "D.TransformedDistribution(D.Normal(r(4), 1.0), D.StickBreakingTransform())",
    "D.TransformedDistribution(D.Uniform(0.0, p(1.0, 2.0)), [D.AffineTransform(0, t(-1.0, 3.0))])",
    "D.TransformedDistribution(D.Gamma(p(2.0), 1.0), D.ReshapeTransform((), (1,)))",
    "D.TransformedDistribution(D.Normal(r(1), 1.0), D.AffineTransform(T.zeros(4, 2), 2.0))",
    "D.Uniform(p(0.0, -1.0), p(1.0, 3.0))",
    "D.Uniform(0, 2)",
    "D.VonMises(p(0.0, 1.0, -2.0), p(1e-6, 2.0, 50.0))",
    "D.VonMises(t(0.0), t(1.0))",
    "D.Weibull(p(1.0, 2.0), p(0.5, 3.0))",
    "D.Weibull(2.0, 1.5)",
    "D.Wishart(p(3.0, 5.5), covariance_matrix=T.eye(3) + 0.5 * T.ones(3, 3))",
    "D.Wishart(4.0, scale_tril=T.eye(2) + t([[0.0, 0.0], [0.5, 0.0]]))",
    "D.Wishart(p(3.5), precision_matrix=T.eye(2) * 2.0)",
]
PROPERTIES = "mean mode variance stddev batch_shape event_shape has_rsample has_enumerate_support"


def made(case: str) -> list[tuple[Names, Any]]:
    frameworks = [Names(framework) for framework in FRAMEWORKS]
    return [(names, names.evaluate(case)) for names in frameworks]


def compare(what: str, both: list[Any], f: Callable[..., Any], **tolerances: float) -> None:
    """f(names, distribution), or what it raises, is the same for both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (outcome(partial(f, *arguments)) for arguments in both)
    assert_same(a, b, what, **tolerances)


def drawn(method: str, shape: tuple[int, ...], names: Names, d: Any) -> Any:
    names.T.manual_seed(11)
    sample = getattr(d, method)(shape)
    return sample, names.T.rand(2)  # the same number of draws, too


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str)
def test_samples(case: str, shape: tuple[int, ...]) -> None:
    both = made(case)
    for method in ("sample", "rsample"):
        compare(method, both, partial(drawn, method, shape))


def called(name: str, names: Names, d: Any, *arguments: Any, **more: Any) -> Any:
    result = getattr(d, name)
    return result(*arguments, **more) if callable(result) else result


@pytest.mark.parametrize("case", CASES)
def test_metadata_and_moments(case: str) -> None:
    both = made(case)
    for name in (*PROPERTIES.split(), "entropy", "perplexity", "enumerate_support", "__repr__"):
        compare(name, both, partial(called, name), rtol=2e-4 if name == "perplexity" else 2e-5)
    compare("enumerate", both, partial(called, "enumerate_support", expand=False))
    compare("support", both, lambda names, d: repr(d.support))
    constraints = both, lambda names, d: [(k, repr(c)) for k, c in d.arg_constraints.items()]
    compare("arg_constraints", *constraints)


def with_values(both: list[tuple[Names, Any]], shape: tuple[int, ...] = (4,)) -> list[Any]:
    """Beside each distribution one sample, PyTorch's."""
    (mine, d), (names, theirs) = both
    names.T.manual_seed(5)
    sample = theirs.sample(shape)
    return [(mine, d, mine.T.from_numpy(sample.numpy().copy())), (names, theirs, sample)]


def inverted(names: Names, d: Any) -> Any:
    quantiles = names.T.linspace(0.05, 0.95, 7)
    return d.icdf(quantiles.reshape(7, *[1] * len(d.batch_shape)))


@pytest.mark.parametrize("case", CASES)
def test_densities(case: str) -> None:
    both = made(case)
    for method in ("log_prob", "cdf"):
        compare(method, with_values(both), partial(called, method))
    compare("icdf", both, inverted)


def gradients(what: str, names: Names, d: Any, value: Any) -> Any:
    names.T.manual_seed(3)
    more = {"rsample": ((3,),), "log_prob": (value,), "cdf": (value,)}
    result = called(what, names, d, *more.get(what, ()))
    if not result.requires_grad or not names.parameters:
        return "no gradient"
    weights = names.T.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result)
    total = (result * weights).sum()
    try:
        grads = names.T.autograd.grad(total, names.parameters, allow_unused=True)
    except NotImplementedError:
        return "not implemented"
    except RuntimeError:  # draws of Wishart that were repaired in place
        return "written in place"
    return [names.t(0.0) if g is None else g for g in grads]


@pytest.mark.parametrize("case", CASES)
def test_gradients(case: str) -> None:
    for what in ("log_prob", "rsample", "entropy", "mean", "variance", "cdf"):
        compare(what, with_values(made(case)), partial(gradients, what), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_expand(case: str) -> None:
    both = [(names, d.expand((2, *d.batch_shape))) for names, d in made(case)]
    for name in ("__repr__", "batch_shape", "event_shape", "mean", "_validate_args"):
        compare(name, both, partial(called, name))
    compare("sample", both, partial(drawn, "sample", ()))
    compare("log_prob", with_values(both, ()), partial(called, "log_prob"))
    compare("twice", both, lambda names, d: d.expand((3, *d.batch_shape)).batch_shape)


ERRORS = [
    "D.Normal(t(0.0, float('nan')), 1.0)",
    "D.Normal(0.0, t(1.0, -1.0))",
    "D.Normal(0.0, 1.0).log_prob(1.0)",
    "D.Normal(0.0, t(1.0, 2.0)).log_prob(T.zeros(3))",
    "D.Normal('a', 1.0)",
    "D.Bernoulli(0.5, 0.5)",
    "D.Bernoulli()",
    "D.Bernoulli(1.5)",
    "D.Bernoulli(0.5).log_prob(t(0.5))",
    "D.Binomial(-1, t(0.5))",
    "D.Binomial(t(2, 3), t(0.5)).entropy()",
    "D.Binomial(t(2, 3), t(0.5)).enumerate_support()",
    "D.Categorical(t(0.5))",
    "D.Categorical(logits=t(0.5))",
    "D.Categorical(t(-0.5, 1.5))",
    "D.Categorical(t(0.5, 0.5)).log_prob(t(2))",
    "D.ContinuousBernoulli(t(1.5), validate_args=True)",
    "D.Dirichlet(t(1.0))",
    "D.Dirichlet(t(1.0, -1.0))",
    "D.Dirichlet(t(1.0, 1.0)).log_prob(t(0.7, 0.7))",
    "D.Exponential(t(-1.0))",
    "D.Gamma(1.0, t(-1.0))",
    "D.Geometric(t(0.0, 0.5))",
    "D.Independent(D.Normal(0.0, 1.0), 1)",
    "D.Independent(D.Bernoulli(t(0.5)[None]), 1).enumerate_support()",
    "D.LKJCholesky(1)",
    "D.LowRankMultivariateNormal(t(0.0), T.ones(1, 1), T.ones(1))",
    "D.LowRankMultivariateNormal(T.zeros(2), T.ones(2), T.ones(2))",
    "D.LowRankMultivariateNormal(T.zeros(2), T.ones(3, 1), T.ones(2))",
    "D.LowRankMultivariateNormal(T.zeros(2), T.ones(2, 1), T.ones(3))",
    "D.LowRankMultivariateNormal(T.zeros(2, 2), T.ones(3, 2, 1), T.ones(2))",
    "D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0))",
    "D.MixtureSameFamily(D.Categorical(T.ones(2)), 1)",
    "D.MixtureSameFamily(D.Categorical(T.ones(2)), D.Normal(T.zeros(3), 1.0))",
    "D.MixtureSameFamily(D.Categorical(T.ones(4, 2)), D.Normal(T.zeros(3, 2), 1.0))",
    "D.Multinomial(t(3), T.ones(2))",
    "D.Multinomial(3, T.ones(2)).log_prob(t(3.0, 3.0))",
    "D.MultivariateNormal(t(0.0), T.eye(1))",
    "D.MultivariateNormal(T.zeros(2))",
    "D.MultivariateNormal(T.zeros(2), T.eye(2), T.eye(2))",
    "D.MultivariateNormal(T.zeros(2), T.ones(2))",
    "D.MultivariateNormal(T.zeros(2), scale_tril=T.ones(2))",
    "D.MultivariateNormal(T.zeros(2), -T.eye(2))",
    "D.MultivariateNormal(T.zeros(2), T.eye(2)).log_prob(T.zeros(3))",
    "D.OneHotCategorical(T.ones(2)).log_prob(t(1.0, 1.0))",
    "D.Poisson(t(-1.0))",
    "D.Poisson(t(1.0)).log_prob(t(0.5))",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), 1)",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), [1])",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())",
    "D.Uniform(t(1.0), t(0.0))",
    "D.Uniform(0.0, 1.0).log_prob(t(2.0))",
    "D.Wishart(t(1.0), T.eye(3))",
    "D.Wishart(t(3.0))",
    "D.Wishart(t(3.0), T.ones(3))",
    "D.Distribution(validate_args=False).mean",
    "D.Distribution(validate_args=False).expand((2,))",
    "D.Distribution.set_default_validate_args(3)",
    "type('Own', (D.Normal,), {'__module__': 'm', '__init__': lambda s: "
    "D.Normal.__init__(s, 0.0, 1.0)})().expand((2,))",
    "D.Cauchy(0.0, 1.0).enumerate_support()",
    "D.Gamma(1.0, 1.0).icdf(t(0.5))",
]


@pytest.mark.parametrize("expression", ERRORS)
def test_error_texts(expression: str) -> None:
    a, b = (outcome(partial(Names(f).evaluate, expression)) for f in FRAMEWORKS)
    assert isinstance(b, tuple) and isinstance(b[0], type), "PyTorch raises here"
    assert a == b


def test_subclasses_with_other_parameters_expand() -> None:
    """As in pyro: a subclass that names other parameters passes on to the base class's expand."""
    from taeda import distributions, tensor

    class Sharp(distributions.Categorical):
        arg_constraints = {"sharpness": distributions.constraints.positive}

        def __init__(self, sharpness: Any, validate_args: bool | None = None) -> None:
            self.sharpness = sharpness
            super().__init__(logits=sharpness.unsqueeze(-1) * tensor([0.0, 1.0]))

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Sharp, _instance)
            new.sharpness = self.sharpness.expand(batch_shape)
            return super().expand(batch_shape, new)

    d = Sharp(tensor([1.0, 2.0])).expand((3, 2))
    assert d.probs.shape == (3, 2, 2)
    assert d.sample().shape == (3, 2)
