"""Muon and Adafactor take PyTorch's steps."""

import pytest

import taeda

torch = pytest.importorskip("torch")

CASES = [
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.3, "weight_decay": 0.1, "d": 2.0, "beta2_decay": -0.5}),
    ("Adafactor", {"eps": (1e-3, 0.5), "maximize": True}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "nesterov": False, "momentum": 0.5, "weight_decay": 0.3}),
    ("Muon", {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
]


def trained(framework, name, options):
    shapes = [(4, 3), (3, 6)] if name == "Muon" else [(4, 3), (5,), (2, 3, 4)]
    framework.manual_seed(0)
    params = [framework.randn(*s).requires_grad_() for s in shapes]
    optimizer = getattr(framework.optim, name)(params, **options)
    for _ in range(5):
        optimizer.zero_grad()
        sum((p.sin() * (i + 1)).sum() for i, p in enumerate(params)).backward()
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps(name, options):
    (a, mine), (b, theirs) = (trained(f, name, options) for f in (taeda, torch))
    tolerance = 2e-2 if name == "Muon" else 1e-5  # Muon orthogonalizes in bfloat16
    for x, y in zip(a, b):
        assert abs(x.detach().numpy() - y.detach().numpy()).max() < tolerance
    state, other = mine.state_dict(), theirs.state_dict()
    assert [sorted(s) for s in state["state"].values()] == [
        sorted(s) for s in other["state"].values()
    ]
    assert sorted(state["param_groups"][0]) == sorted(other["param_groups"][0])


@pytest.mark.parametrize(
    "call",
    [
        "T.optim.Muon([T.zeros(3)])",
        "T.optim.Muon([T.zeros(3, 3)], lr=-1)",
        "T.optim.Muon([T.zeros(3, 3)], momentum=-1)",
        "T.optim.Muon([T.zeros(3, 3)], adjust_lr_fn='x')",
        "T.optim.Adafactor([T.zeros(3)], lr=-1)",
        "T.optim.Adafactor([T.zeros(3)], d=0.5)",
        "T.optim.Adafactor([T.zeros(3)], beta2_decay=0.5)",
        "T.optim.Adafactor([T.zeros(3)], eps=(-1, 1))",
    ],
)
def test_errors(call):
    errors = []
    for framework in (taeda, torch):
        with pytest.raises(ValueError) as error:
            eval(call, {"T": framework})
        errors.append(str(error.value))
    assert errors[0] == errors[1]
