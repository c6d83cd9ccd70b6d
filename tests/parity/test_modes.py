"""That the ways of calling find what is wrong: a fault is planted in taeda's side of a call."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity import cases, databases, modes, report, runner, sides, wrong  # noqa: E402
from tests.parity.child import Task  # noqa: E402

SINGLE = ["add", "mm", "exp", "cat", "linalg.inv", "fft.fft"]
PLAIN = ["out", "out strided", "out resized"]


def call_of(title, mode, dtype=torch.float32, sample=0):
    info = next(i for i in databases.operators() if databases.title(i) == title)
    calls = cases.operator_calls(info, dtype, sample, 1)
    return next(call for call in calls if call.mode == mode)


@pytest.fixture
def found(monkeypatch):
    """Kinds of what is found in a call whose operator `fault` stands for in taeda: it is called
    with the operator, out= (or None) and the arguments."""

    def run(call, fault):
        given = sides.Side.variant

        def variant(side, name):
            op = given(side, name)
            if not side.taeda:
                return op
            return lambda *args, out=None, **kwargs: fault(op, out, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(sides.Side, "variant", variant)
            theirs, ours = call.theirs(), call.ours()
            assert not cases.skipped(call, theirs)
            return {kind for kind, _ in cases.compare(call, theirs, ours)}

    return run


def right(op, out, *args, **kwargs):
    return op(*args, **kwargs) if out is None else op(*args, **kwargs, out=out)


def wrong_numbers(op, out, *args, **kwargs):
    result = right(op, out, *args, **kwargs)
    return result if out is None else result.add_(0.5)


def writes_nothing(op, out, *args, **kwargs):
    return op(*args, **kwargs) if out is None else out


def returns_another(op, out, *args, **kwargs):
    result = right(op, out, *args, **kwargs)
    return result if out is None else result.clone()


def takes_any_dtype(op, out, *args, **kwargs):
    result = op(*args, **kwargs)
    return result if out is None else out.copy_(result)


def takes_no_out(op, out, *args, **kwargs):
    if out is not None:
        raise TypeError("unexpected keyword argument 'out'")
    return op(*args, **kwargs)


@pytest.mark.parametrize("title", SINGLE)
@pytest.mark.parametrize("mode", PLAIN)
def test_a_wrong_out_of_an_operator_with_one_result_is_found(title, mode, found):
    call = call_of(title, mode)
    assert not found(call, right)
    assert "value" in found(call, wrong_numbers)
    assert found(call, writes_nothing)
    assert found(call, returns_another)
    assert found(call, takes_no_out) == {"refused"}


@pytest.mark.parametrize("title", ["mm", "exp", "cat", "linalg.inv", "fft.fft"])
def test_an_out_of_a_dtype_that_pytorch_refuses_is_found(title, found):
    call = call_of(title, "out dtype")
    assert not found(call, right)
    assert found(call, takes_any_dtype) == {"accepted"}


@pytest.mark.parametrize("sample", range(len(modes.DTYPES) - 1))
def test_an_out_of_a_wider_dtype_is_compared_in_the_precision_of_the_result(sample, found):
    call = call_of("add", "out cast", sample=sample)
    assert not found(call, right)
    if call.theirs().error is None:
        assert "value" in found(call, wrong_numbers)


def test_a_wrong_out_that_is_the_argument_is_found(found):
    call = call_of("exp", "out aliased")
    assert not found(call, right)
    assert "value" in found(call, wrong_numbers)


def test_an_out_that_pytorch_does_not_take_is_found(found):
    call = call_of("flip", "out absent")
    assert not found(call, right)
    assert found(call, writes_nothing) == {"accepted"}


def test_a_result_that_requires_grad_by_mistake_is_found(found):
    def marked(op, out, *args, **kwargs):
        return op(*args, **kwargs).detach().requires_grad_()

    def cut(op, out, *args, **kwargs):
        return op(*args, **kwargs).detach()

    assert found(call_of("exp", "function"), marked) == {"requires_grad"}
    assert found(call_of("exp", "method"), cut) == {"requires_grad"}


@pytest.mark.parametrize("title, sample", [("exp", 6), ("nn.functional.avg_pool2d", 0)])
def test_a_result_in_another_order_than_its_permuted_argument_is_found(title, sample, found):
    def contiguous(op, out, *args, **kwargs):
        return op(*args, **kwargs).contiguous()

    call = call_of(title, "permuted", sample=sample)
    assert not found(call, right)
    assert "strides" in found(call, contiguous)


def test_an_operator_that_misreads_permuted_arguments_is_found(found):
    def as_it_lies(op, out, x, *args, **kwargs):
        flat = x.detach().as_strided((x.numel(),), (1,))
        return op(flat.view(x.shape), *args, **kwargs)

    assert "value" in found(call_of("exp", "permuted", sample=6), as_it_lies)


def test_results_of_some_modes_replace_those_of_the_same_modes():
    before = runner.Results()
    before.add(Task("operator", 0, "exp", "float32", 0, 1), "out", 0, "bad", [("value", "")])
    before.add(Task("operator", 0, "exp", "float32", 0, 1), "method", 0, "bad", [("value", "")])
    after = runner.Results()
    after.add(Task("operator", 0, "exp", "float32", 0, 1), "out", 0, "ok", [])
    first, second = report.compact(before), report.compact(after)
    expected = {"exp": {"out": [1, 0], "method": [1, 1]}}
    for text in (report.compact(after, first, "out.*"), report.merged(first, second, "out.*")):
        head = report.json.loads(text)
        assert report.unpacked(head) == expected
        assert head["mismatches"] == [["exp", "method value", 1]] and head["calls"] == 2


def test_operators_of_one_and_of_several_results_are_called_with_out():
    for title in ("add", "where", "linalg.det", "sort", "linalg.svd"):
        outcome = call_of(title, "out").theirs()
        assert outcome.error is None


def wrong_call_of(title, accepted):
    """The first generated call of an operator that PyTorch accepts, or one that it refuses."""
    info = next(i for i in databases.operators() if databases.title(i) == title)
    for call in cases.wrong_calls(info, None, 0, 1000):
        theirs = call.theirs()
        if not cases.skipped(call, theirs) and (theirs.error is None) == accepted:
            return call
    raise AssertionError


@pytest.mark.parametrize("title", ["exp", "mm", "softmax", "nn.functional.linear"])
def test_a_wrong_argument_that_is_accepted_or_refused_otherwise_is_found(title, found):
    def accepts_anything(op, out, *args, **kwargs):
        return None

    def raises_another_class(op, out, *args, **kwargs):
        raise KeyError

    def refuses_anything(op, out, *args, **kwargs):
        raise TypeError

    call = wrong_call_of(title, accepted=False)
    assert not found(call, right)
    assert found(call, accepts_anything) == {"accepted"}
    assert found(call, raises_another_class) == {"class"}
    assert found(wrong_call_of(title, accepted=True), refuses_anything) == {"refused"}


def test_every_operator_has_wrong_arguments():
    counts = {}
    for info in databases.operators():
        if torch.float32 in info.dtypes and wrong._right(info):
            counts[databases.title(info)] = len(list(wrong.calls(info)))
    assert not {title: count for title, count in counts.items() if count < 7}
    assert len(counts) > 500
