"""A few thousand of the calls of `make parity`, in each run of the tests."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity import child, judge, mirror, plan, report, runner, translate  # noqa: E402

import taeda  # noqa: E402


@pytest.fixture(scope="module")
def results():
    found = runner.Results()
    runner.run(plan.selection(seed=0), found)
    return found


def test_samples_of_all_databases_agree_with_pytorch(results):
    reasons = {(item.operator, item.aspect) for item in report.exceptions()}
    groups = report.grouped(results.findings)
    without = {
        key: str(found[0])
        for key, found in groups.items()
        if key not in reasons and not key[1].endswith(" words")
    }
    assert not without
    assert results.calls > 3000


def test_nothing_dies(results):
    assert not [f for f in results.findings if f.kind in ("crash", "hang") or f.mode == "harness"]


def test_each_reason_names_an_operator_of_the_database():
    titles = {task.title for task in plan.everything(0, 1)}
    assert {item.operator for item in report.exceptions()} <= titles


def test_names_are_found_by_their_shortest_path():
    assert translate.translate(torch.linalg.svd) is taeda.linalg.svd
    assert translate.translate(torch.Tensor.add_) is taeda.Tensor.add_
    with pytest.raises(translate.Missing):
        translate.reach("torch.no_such_operator")


def test_code_of_the_databases_is_run_over_taeda():
    function = lambda x: torch.nn.functional.relu(x)  # noqa: E731
    function.__module__ = "torch.testing._internal.example"
    assert isinstance(translate.translate(function)(taeda.ones(2)), taeda.Tensor)


@pytest.mark.parametrize("library", ["torch", "taeda"])
def test_copies_keep_layout_and_shared_memory(library):
    base = torch.arange(12.0).reshape(3, 4)
    copies = mirror.Copies(library)
    whole, part = copies((base, base.t()[1:, ::2]))
    assert tuple(part.stride()) == (1, 8) and part.storage_offset() == 1
    whole.zero_()
    assert not part.any()
    assert base.any()


def test_a_wrong_value_is_found_and_a_nearer_one_is_not():
    theirs = torch.tensor([1.0, 2.0])
    rules = judge.Rules()
    wrong = judge.values(taeda.tensor([1.0, 2.1]), theirs, lambda: None, rules)
    assert [kind for kind, _ in wrong] == ["value"]
    exact = torch.tensor([1.0, 2.1], dtype=torch.float64)
    assert not judge.values(taeda.tensor([1.0, 2.1]), theirs, lambda: exact, rules)


def test_small_elements_are_not_measured_by_large_ones():
    theirs = torch.tensor([1.0, 0.0])
    exact = lambda: theirs.double()  # noqa: E731
    wrong = judge.values(taeda.tensor([1.0, 2e-4]), theirs, exact, judge.Rules())
    assert [kind for kind, _ in wrong] == ["value"]
    # PyTorch's own largest error is what ours may have in any element.
    rounded = torch.tensor([1.0003, 0.0])
    assert not judge.values(taeda.tensor([1.0, 2e-4]), rounded, exact, judge.Rules())


def test_nan_is_not_any_number():
    nan = float("nan")
    for ours, theirs, count in ((nan, 1.0, 1), (1.0, nan, 1), (nan, nan, 0), (complex(nan), 1j, 1)):
        assert len(judge.values(ours, theirs, lambda: None, judge.Rules())) == count
    found = judge.values(taeda.tensor([nan]), torch.tensor([1.0]), lambda: None, judge.Rules())
    assert [kind for kind, _ in found] == ["value"]


def test_dtype_shape_strides_and_structure_are_compared():
    theirs = torch.zeros(2, 3)
    for ours, kind in (
        (taeda.zeros(2, 3, dtype=taeda.float64), "dtype"),
        (taeda.zeros(3, 2), "shape"),
        (taeda.zeros(3, 2).t(), "strides"),
        ((taeda.zeros(2, 3), 1), "structure"),
    ):
        found = judge.values(ours, theirs, lambda: None, judge.Rules())
        assert [kind for kind, _ in found] == [kind]


def test_exceptions_are_compared_by_class():
    ours, theirs = judge.Outcome(error=IndexError("a")), judge.Outcome(error=TypeError("b"))
    assert [kind for kind, _ in judge.errors(theirs, ours)] == ["class"]
    assert [kind for kind, _ in judge.errors(theirs, judge.Outcome(1))] == ["accepted"]
    assert [kind for kind, _ in judge.errors(judge.Outcome(1), ours)] == ["refused"]
    assert not judge.errors(ours, judge.Outcome(error=IndexError("c")))


def test_the_death_of_a_child_is_one_finding(monkeypatch):
    import os

    made = child.make

    def dies_in_method(call, tell):
        if call.mode == "method":
            tell("ours")
            os._exit(3)
        return made(call, tell)

    monkeypatch.setattr(child, "make", dies_in_method)
    found = runner.Results()
    tasks = [t for t in plan.everything(0, 1, "abs") if t.kind == "operator"][:2]
    runner.run(tasks, found)
    assert [finding.aspect for finding in found.findings] == ["method crash"] * 2
    assert found.counts["abs", "function", tasks[1].dtype] == [1, 0]


def test_a_worker_that_hangs_is_ended_while_others_talk(monkeypatch, tmp_path):
    import os
    import signal
    import time

    resumed = tmp_path / "resumed"
    hanging, talking = [t for t in plan.everything(0, 1, "abs") if t.kind == "operator"][:2]
    parent = os.getpid()

    def run_task(number, task, done, mode, tell):
        assert os.getpid() != parent
        if task == hanging and done == 0:
            tell("ours", number, 0, "function", 0)
            signal.pause()
        if task == hanging:
            resumed.touch()
        end = time.monotonic() + 100
        while task == talking and not resumed.exists():
            tell("theirs", number, 0, "function", 0)
            signal.sigtimedwait([], 0.05)
            if time.monotonic() > end:
                os._exit(3)
        tell("end", number, 1)

    monkeypatch.setattr(child, "run_task", run_task)
    monkeypatch.setattr(runner, "SILENCE_S", 5.0)
    found = runner.Results()
    runner.run([hanging, talking], found, processes=2)
    assert [(item.task, item.aspect) for item in found.findings] == [(hanging, "function hang")]
    assert found.oracle_deaths == 0
