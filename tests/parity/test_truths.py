"""What decides where taeda's value is not PyTorch's: it must never take a worse one."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity import (  # noqa: E402
    cases,
    databases,
    definitions,
    differences,
    judge,
    modes,
    plan,
    report,
    rounding,
    runner,
    truths,
)

import taeda  # noqa: E402


def call_of(title, dtype, mode):
    info = next(i for i in databases.operators() if databases.title(i) == title)
    calls = cases.operator_calls(info, dtype, 0, 1)
    return next(call for call in calls if call.mode == mode)


def as_taeda(tensor):
    return taeda.from_dlpack(tensor.detach().contiguous())


@pytest.fixture(autouse=True)
def _all_the_time_it_takes(monkeypatch):
    monkeypatch.setattr(differences, "MOST_SECONDS", float("inf"))


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


def judged(call, wrong):
    """The findings where taeda gives what PyTorch gives, changed by `wrong`."""
    theirs = call.theirs()
    values = [x if x is None else as_taeda(wrong(x.detach())) for x in judge.flat(theirs.value)]
    return cases.compare(call, theirs, judge.Outcome(value=values))


@pytest.mark.parametrize("mode", list(differences.MODES))
@pytest.mark.parametrize("title", ["exp", "linalg.solve", "tanh", "nn.functional.gelu"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_derivative_that_is_a_thousandth_off_is_found(title, mode, dtype):
    call = call_of(title, dtype, mode)
    if call.theirs().error is not None:
        pytest.skip("PyTorch has no such derivative")
    assert not judged(call, lambda x: x)
    assert any(kind == "value" for kind, _ in judged(call, lambda x: x * 1.001))


@pytest.mark.parametrize("mode", list(differences.MODES))
@pytest.mark.parametrize(
    "title, dtype",
    [
        ("sin", torch.float32),
        ("linalg.inv", torch.float32),
        ("cumprod", torch.float32),
        ("logcumsumexp", torch.float32),
        ("sin", torch.bfloat16),
        ("cumprod", torch.bfloat16),
    ],
)
def test_a_derivative_that_is_wrong_in_one_element_is_found(title, mode, dtype):
    call = call_of(title, dtype, mode)
    if call.theirs().error is not None:
        pytest.skip("PyTorch has no such derivative")
    by = 0.01 if dtype == torch.float32 else 0.25

    def wrong(x):
        largest = x.abs().max()
        moved = x.clone(memory_format=torch.contiguous_format)
        moved.view(-1)[x.abs().argmax()] += by * largest + by
        return moved

    assert not judged(call, lambda x: x)
    assert any(kind == "value" for kind, _ in judged(call, wrong))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rounding_leaves_no_doubt_at_a_tie(dtype):
    side = lambda library, double=False, moved=None: _TieSide(moved, dtype)  # noqa: E731
    found = rounding.derivative(lambda s: s.value(), side, dtype)
    assert found[0].doubt.tolist() == [0.0, 0.0]


class _TieSide:
    """A step at 1, and a constant."""

    def __init__(self, moved, dtype):
        self.moved, self.dtype = moved, dtype

    def value(self):
        x = torch.ones(2, dtype=torch.float64)
        x = x if self.moved is None else self.moved(x, self.dtype)
        return [torch.where(x >= 1, 5.0, 0.0) * torch.tensor([1.0, 0.0])]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_limit_does_not_choose_the_derivative_at_a_kink(dtype, value):
    """PyTorch says 0 of |x| at 0, its limit from above 1."""
    info = next(i for i in databases.operators() if i.name == "abs")
    sample = type(next(iter(databases.samples(info, dtype, True, more=False, seed=0))))
    zeros = sample(torch.zeros(3, dtype=dtype, requires_grad=True))
    side = cases._side_of(info, zeros, True, 0)
    mode = cases.MODES["gradient"]
    opinions = tuple(cases._opinions(info, dtype, "gradient", mode, zeros, 0))
    call = cases.Call("gradient", 0, mode.run, side, mode.rules, mode.free, opinions=opinions)
    found = judged(call, lambda x: torch.full_like(x, value))
    assert bool(found) == (value != 0)


def test_a_limit_is_heard_where_the_formula_gives_no_number():
    found = rounding._agreed(
        torch.tensor([torch.nan, 1.0, torch.nan]),
        torch.tensor([2.0, 3.0, 4.0]),
        torch.tensor([2.0, 3.0, 5.0]),
    )
    assert judge.agrees(
        taeda.tensor([2.0]), [differences.Estimate(found.value[:1], found.doubt[:1])], judge.Rules()
    )
    for i in (1, 2):
        one = [differences.Estimate(found.value[i : i + 1], found.doubt[i : i + 1])]
        for value in (found.value[i], torch.nan):
            assert not judge.agrees(taeda.tensor([float(value)]), one, judge.Rules())


@pytest.mark.parametrize("name", ["special.erfcx", "special.log_ndtr"])
def test_series_go_on_where_formulas_end(name):
    at = torch.tensor([19.999999, 20.000001], dtype=torch.float64)
    _, *slopes = definitions.CHAINS[name]
    for slope in slopes:
        near, far = slope(at if name == "special.erfcx" else -at).tolist()
        assert near == pytest.approx(far, rel=1e-6)


def test_an_out_of_half_precision_may_be_rounded_at_last():
    info = next(i for i in databases.operators() if i.name == "cumprod")
    calls = cases.operator_calls(info, torch.float64, 2, 1)
    call = next(call for call in calls if call.mode == "out cast")
    theirs, side = call.theirs(), call.side("torch")
    exact = side.call().detach()
    ((dtype, shape),) = theirs.value[1]
    assert dtype == torch.bfloat16

    def judged_as(value):
        ours = [[as_taeda(value.bfloat16().double())]], [(taeda.bfloat16, shape)], [True], False
        return cases.compare(call, theirs, judge.Outcome(value=ours))

    assert not judged_as(exact)
    assert judged_as(exact + 0.1)
    with pytest.raises(TypeError):
        truths._wider(torch.int32)


@pytest.mark.parametrize("strides, shared", [((5, 1), False), ((1, 4), False), ((1, 1), True)])
def test_calls_in_place_on_shared_elements_say_nothing(strides, shared):
    info = next(i for i in databases.operators() if i.name == "erfc")
    sample = next(iter(databases.samples(info, torch.float32, False, more=False, seed=0)))
    sample.input = torch.rand(20).as_strided((4, 5), strides)
    side = cases._side_of(info, sample, False, 0)
    call = cases.Call("in-place", 0, modes.in_place, side, judge.Rules())
    assert cases.skipped(call, call.theirs()) == shared


@pytest.mark.parametrize(
    "name, at",
    [("digamma", 0.7), ("special.i1", 1.3), ("special.erfcx", 0.7), ("special.log_ndtr", 0.7)],
)
def test_definitions_have_the_derivatives_of_the_functions(name, at):
    x = torch.tensor([at, -at / 2, 3.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(definitions.DEFINITIONS[name], (x,))
    assert torch.autograd.gradgradcheck(definitions.DEFINITIONS[name], (x,))


def test_vmap_is_what_a_loop_gives():
    call = call_of("sum", torch.float32, "vmap")
    theirs = call.theirs()
    wrong = judge.Outcome(value=as_taeda(theirs.value + 1))
    assert cases.compare(call, theirs, wrong)


def test_calls_made_again_count_once():
    task = plan.again("sin\tforward value\tfloat32\t0\tsaid so")[0]
    assert (task.title, task.dtype, task.start, task.modes) == ("sin", "float32", 0, ("forward",))
    before = report._as_text(
        {
            "modes": ["forward"],
            "operators": {"sin": "0:5/1"},
            "mismatches": [["sin", "forward value", 1]],
        }
    )
    results = runner.Results()
    results.add(task, "forward", 0, "ok", [])
    after = report.json.loads(report.corrected(results, before))
    assert after["operators"] == {"sin": "0:5"} and after["mismatches"] == []
    results.add(task, "forward", 0, "ok", [])
    with pytest.raises(ValueError, match="more than differed"):
        report.corrected(results, before)
