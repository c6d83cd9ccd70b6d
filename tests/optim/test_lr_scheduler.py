"""Schedules against PyTorch's, value by value."""

import warnings

import pytest

import taeda
from taeda import nn
from taeda.optim import SGD, lr_scheduler

CASES = [
    ("LambdaLR", {"lr_lambda": lambda step: 0.9**step}),
    ("MultiplicativeLR", {"lr_lambda": lambda step: 0.95}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": 1.0, "epochs": 4, "steps_per_epoch": 5, "three_phase": True}),
    ("OneCycleLR", {"max_lr": [1.0, 2.0], "total_steps": 20, "anneal_strategy": "linear"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 4}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "mode": "exp_range", "gamma": 0.9}),
]


def _optimizer(torch):
    a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    return torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.25}], lr=0.5, momentum=0.9)


def _trace(optimizer, scheduler, steps):
    values = []
    for _ in range(steps):
        values += [group["lr"] for group in optimizer.param_groups]
        values += [group["momentum"] for group in optimizer.param_groups]
        values += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    return values


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v)[:40])
def test_values_equal_pytorchs(name, options):
    torch = pytest.importorskip("torch")
    theirs = _optimizer(torch)
    expected = _trace(theirs, getattr(torch.optim.lr_scheduler, name)(theirs, **options), 17)
    ours = _optimizer(taeda)
    actual = _trace(ours, getattr(lr_scheduler, name)(ours, **options), 17)
    assert actual == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v)[:40])
def test_state_resumes_exactly(name, options):
    first = _optimizer(taeda)
    scheduler = getattr(lr_scheduler, name)(first, **options)
    _trace(first, scheduler, 4)
    second = _optimizer(taeda)
    again = getattr(lr_scheduler, name)(second, **options)
    second.load_state_dict(first.state_dict())
    again.load_state_dict(scheduler.state_dict())
    assert _trace(second, again, 6) == _trace(first, scheduler, 6)


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v)[:40])
def test_state_has_pytorchs_fields(name, options):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.optim.lr_scheduler, name)(_optimizer(torch), **options).state_dict()
    ours = getattr(lr_scheduler, name)(_optimizer(taeda), **options).state_dict()
    assert ours.keys() == theirs.keys()


def test_sequential_and_chained_equal_pytorchs():
    torch = pytest.importorskip("torch")

    def sequential(torch):
        o, s = _optimizer(torch), torch.optim.lr_scheduler
        parts = [
            s.LinearLR(o, 0.1, total_iters=3),
            s.CosineAnnealingLR(o, 5),
            s.ExponentialLR(o, 0.5),
        ]
        return _trace(o, s.SequentialLR(o, parts, [3, 8]), 12)

    def chained(torch):
        o, s = _optimizer(torch), torch.optim.lr_scheduler
        return _trace(o, s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]), 8)

    assert sequential(taeda) == pytest.approx(sequential(torch))
    assert chained(taeda) == pytest.approx(chained(torch))


def test_reduce_on_plateau_equals_pytorchs():
    torch = pytest.importorskip("torch")

    def run(torch):
        o = _optimizer(torch)
        s = torch.optim.lr_scheduler.ReduceLROnPlateau(
            o, patience=1, cooldown=1, min_lr=[0.1, 0.01]
        )
        values = []
        for metric in [1.0, 0.9, 0.9, 0.91, 0.92, 0.8, 0.85, 0.86, 0.87, 0.88, 0.9]:
            s.step(metric)
            values += s.get_last_lr()
        return values

    assert run(taeda) == run(torch)


def test_step_lr_golden():
    optimizer = SGD([nn.Parameter(taeda.ones(1))], lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    seen = []
    for _ in range(5):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert seen == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_wrong_order_warns():
    optimizer = SGD([nn.Parameter(taeda.ones(1))], lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"lr_scheduler.step\(\)` before `optimizer.step\(\)"):
        scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = SGD([nn.Parameter(taeda.ones(1))], lr=1.0)
        right = lr_scheduler.StepLR(fresh, 2)
        fresh.step()
        right.step()


def test_bad_arguments():
    optimizer = SGD([nn.Parameter(taeda.ones(1))], lr=1.0)
    for make, error, text in (
        (lambda: lr_scheduler.StepLR(None, 1), TypeError, "NoneType is not an Optimizer"),
        (lambda: lr_scheduler.StepLR(optimizer, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda: lr_scheduler.OneCycleLR(optimizer, 1.0), ValueError, "must define either"),
        (lambda: lr_scheduler.LambdaLR(optimizer, [abs, abs]), ValueError, "Expected 1 lr_lambdas"),
        (lambda: lr_scheduler.ReduceLROnPlateau(optimizer, factor=2), ValueError, "Factor"),
        (lambda: lr_scheduler.SequentialLR(optimizer, [], []), ValueError, "at least one"),
    ):
        with pytest.raises(error, match=text):
            make()


def test_tensor_lr_changes_in_place():
    lr = taeda.tensor(1.0)
    optimizer = SGD([nn.Parameter(taeda.ones(1))], lr=lr)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert lr.item() == 0.5 and optimizer.param_groups[0]["lr"] is lr
