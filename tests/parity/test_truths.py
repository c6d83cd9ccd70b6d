"""What decides where taeda's value is not PyTorch's: it must never take a worse one."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity import cases, databases, differences, judge, truths  # noqa: E402

import taeda  # noqa: E402


def call_of(title, dtype, mode):
    info = next(i for i in databases.operators() if databases.title(i) == title)
    calls = cases.operator_calls(info, dtype, 0, 1)
    return next(call for call in calls if call.mode == mode)


def as_taeda(tensor):
    return taeda.from_dlpack(tensor.detach().contiguous())


@pytest.mark.parametrize("mode", list(differences.MODES))
@pytest.mark.parametrize("title", ["sin", "linalg.inv", "cumprod"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_finite_differences_are_pytorchs_derivatives(title, mode, dtype):
    call = call_of(title, dtype, mode)
    estimates = differences.derivative(mode, call.side("torch", double=True))
    theirs = judge.flat(call.theirs().value)
    ours = [None if x is None else as_taeda(x.resolve_conj()) for x in theirs]
    assert judge.agrees(ours, estimates, call.rules)
    wrong = [None if x is None else x * 1.001 + 0.001 for x in ours]
    assert not judge.agrees(wrong, estimates, call.rules)


@pytest.mark.parametrize("f", [torch.relu, torch.abs, lambda x: torch.where(x > 1e-4, 3.0, 0.0)])
def test_a_kink_has_no_derivative(f):
    with pytest.raises(differences.NoDerivative):
        differences._along(
            lambda at: f(at[0]), [torch.zeros(1).double()], [torch.ones(1)]
        ).checked()


@pytest.mark.parametrize("name", list(truths.STABLE))
def test_the_order_of_equal_elements_must_be_the_stable_one(name):
    call = call_of(name, torch.int64, "function")
    opinion = judge.flat(call.opinions[0]())
    ours = [as_taeda(x) for x in opinion]
    assert judge.agrees(ours, opinion, call.rules)
    ours[-1] = ours[-1].flip(0) if ours[-1].dim() else ours[-1] + 1
    assert not judge.agrees(ours, opinion, call.rules)


def test_the_databases_reference_decides_where_pytorch_errs_in_double_precision():
    call = call_of("special.bessel_j0", torch.float64, "vmap")
    right = call.opinions[0]()
    assert judge.agrees(as_taeda(right), right, call.rules)
    assert not judge.agrees(as_taeda(right + 1e-6), right, call.rules)


def test_a_value_beside_an_overflow_is_not_taken_for_right():
    theirs = torch.tensor([float("inf"), 1.0])
    exact = lambda: torch.tensor([2.0, 1.0], dtype=torch.float64)  # noqa: E731
    rules = judge.Rules()
    assert judge.values(taeda.tensor([500.0, 1.0]), theirs, exact, rules)
    assert not judge.values(taeda.tensor([2.0, 1.0]), theirs, exact, rules)
    assert not judge.values(taeda.tensor([float("inf"), 1.0]), theirs, exact, rules)


def test_not_implemented_is_a_refusal():
    refused = judge.observe(lambda: NotImplemented)
    assert isinstance(refused.error, TypeError)
    assert not judge.errors(refused, judge.Outcome(error=TypeError("no")))
